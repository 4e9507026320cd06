# Attention of models and of published grids: Llama-2-7B, Qwen2.5-72B, Llama-3.1-405B, GPT-2, DeepSeek (192/128, and 576/512 with values
# in keys), gpt-oss (windows of 1024 keys), the grid of FlashAttention 3, decoding, small shapes for a CPU; rotary embeddings, cache
# writes. FLOPs are counted as FlashAttention counts: pairs of a query and a key that it sees, 2 (D + Dv) each, gradients 6 D + 4 Dv.

# 64 heads on 8, D 128, batch 1: Llama 3 and Qwen
attention_forward q=bf16/1x64x2048x128 k=bf16/1x8x2048x128 v=bf16/1x8x2048x128 lse=? right=0 ; name=h64_8.d128.s2048.causal
attention_forward q=bf16/1x64x2048x128 k=bf16/1x8x2048x128 v=bf16/1x8x2048x128 lse=? ; name=h64_8.d128.s2048.full
attention_forward q=bf16/1x64x4096x128 k=bf16/1x8x4096x128 v=bf16/1x8x4096x128 lse=? right=0 ; name=h64_8.d128.s4096.causal
attention_forward q=bf16/1x64x4096x128 k=bf16/1x8x4096x128 v=bf16/1x8x4096x128 lse=? ; name=h64_8.d128.s4096.full
attention_forward q=bf16/1x64x8192x128 k=bf16/1x8x8192x128 v=bf16/1x8x8192x128 lse=? right=0 ; name=h64_8.d128.s8192.causal
attention_forward q=bf16/1x64x8192x128 k=bf16/1x8x8192x128 v=bf16/1x8x8192x128 lse=? ; name=h64_8.d128.s8192.full
attention_forward q=bf16/1x64x16384x128 k=bf16/1x8x16384x128 v=bf16/1x8x16384x128 lse=? right=0 ; name=h64_8.d128.s16384.causal
attention_forward q=bf16/1x64x16384x128 k=bf16/1x8x16384x128 v=bf16/1x8x16384x128 lse=? ; name=h64_8.d128.s16384.full
attention_forward q=bf16/1x64x32768x128 k=bf16/1x8x32768x128 v=bf16/1x8x32768x128 lse=? right=0 ; name=h64_8.d128.s32768.causal
attention_forward q=bf16/1x64x32768x128 k=bf16/1x8x32768x128 v=bf16/1x8x32768x128 lse=? ; name=h64_8.d128.s32768.full
attention_backward dy=bf16/1x64x2048x128 q=bf16/1x64x2048x128 k=bf16/1x8x2048x128 v=bf16/1x8x2048x128 y=bf16/1x64x2048x128 lse=f32/1x64x2048 dv=? right=0 ; name=h64_8.d128.s2048.causal.backward
attention_backward dy=bf16/1x64x2048x128 q=bf16/1x64x2048x128 k=bf16/1x8x2048x128 v=bf16/1x8x2048x128 y=bf16/1x64x2048x128 lse=f32/1x64x2048 dv=? ; name=h64_8.d128.s2048.full.backward
attention_backward dy=bf16/1x64x4096x128 q=bf16/1x64x4096x128 k=bf16/1x8x4096x128 v=bf16/1x8x4096x128 y=bf16/1x64x4096x128 lse=f32/1x64x4096 dv=? right=0 ; name=h64_8.d128.s4096.causal.backward
attention_backward dy=bf16/1x64x4096x128 q=bf16/1x64x4096x128 k=bf16/1x8x4096x128 v=bf16/1x8x4096x128 y=bf16/1x64x4096x128 lse=f32/1x64x4096 dv=? ; name=h64_8.d128.s4096.full.backward
attention_backward dy=bf16/1x64x8192x128 q=bf16/1x64x8192x128 k=bf16/1x8x8192x128 v=bf16/1x8x8192x128 y=bf16/1x64x8192x128 lse=f32/1x64x8192 dv=? right=0 ; name=h64_8.d128.s8192.causal.backward
attention_backward dy=bf16/1x64x8192x128 q=bf16/1x64x8192x128 k=bf16/1x8x8192x128 v=bf16/1x8x8192x128 y=bf16/1x64x8192x128 lse=f32/1x64x8192 dv=? ; name=h64_8.d128.s8192.full.backward
attention_backward dy=bf16/1x64x16384x128 q=bf16/1x64x16384x128 k=bf16/1x8x16384x128 v=bf16/1x8x16384x128 y=bf16/1x64x16384x128 lse=f32/1x64x16384 dv=? right=0 ; name=h64_8.d128.s16384.causal.backward
attention_backward dy=bf16/1x64x16384x128 q=bf16/1x64x16384x128 k=bf16/1x8x16384x128 v=bf16/1x8x16384x128 y=bf16/1x64x16384x128 lse=f32/1x64x16384 dv=? ; name=h64_8.d128.s16384.full.backward
attention_backward dy=bf16/1x64x32768x128 q=bf16/1x64x32768x128 k=bf16/1x8x32768x128 v=bf16/1x8x32768x128 y=bf16/1x64x32768x128 lse=f32/1x64x32768 dv=? right=0 ; name=h64_8.d128.s32768.causal.backward
attention_backward dy=bf16/1x64x32768x128 q=bf16/1x64x32768x128 k=bf16/1x8x32768x128 v=bf16/1x8x32768x128 y=bf16/1x64x32768x128 lse=f32/1x64x32768 dv=? ; name=h64_8.d128.s32768.full.backward

# hidden size 2048, 16384 tokens: the grid of FlashAttention 3
attention_forward q=bf16/32x32x512x64 k=bf16/32x32x512x64 v=bf16/32x32x512x64 lse=? right=0 ; name=fa3.d64.s512.causal
attention_forward q=bf16/32x32x512x64 k=bf16/32x32x512x64 v=bf16/32x32x512x64 lse=? ; name=fa3.d64.s512.full
attention_forward q=bf16/16x32x1024x64 k=bf16/16x32x1024x64 v=bf16/16x32x1024x64 lse=? right=0 ; name=fa3.d64.s1024.causal
attention_forward q=bf16/16x32x1024x64 k=bf16/16x32x1024x64 v=bf16/16x32x1024x64 lse=? ; name=fa3.d64.s1024.full
attention_forward q=bf16/8x32x2048x64 k=bf16/8x32x2048x64 v=bf16/8x32x2048x64 lse=? right=0 ; name=fa3.d64.s2048.causal
attention_forward q=bf16/8x32x2048x64 k=bf16/8x32x2048x64 v=bf16/8x32x2048x64 lse=? ; name=fa3.d64.s2048.full
attention_forward q=bf16/4x32x4096x64 k=bf16/4x32x4096x64 v=bf16/4x32x4096x64 lse=? right=0 ; name=fa3.d64.s4096.causal
attention_forward q=bf16/4x32x4096x64 k=bf16/4x32x4096x64 v=bf16/4x32x4096x64 lse=? ; name=fa3.d64.s4096.full
attention_forward q=bf16/2x32x8192x64 k=bf16/2x32x8192x64 v=bf16/2x32x8192x64 lse=? right=0 ; name=fa3.d64.s8192.causal
attention_forward q=bf16/2x32x8192x64 k=bf16/2x32x8192x64 v=bf16/2x32x8192x64 lse=? ; name=fa3.d64.s8192.full
attention_forward q=bf16/1x32x16384x64 k=bf16/1x32x16384x64 v=bf16/1x32x16384x64 lse=? right=0 ; name=fa3.d64.s16384.causal
attention_forward q=bf16/1x32x16384x64 k=bf16/1x32x16384x64 v=bf16/1x32x16384x64 lse=? ; name=fa3.d64.s16384.full
attention_forward q=bf16/32x16x512x128 k=bf16/32x16x512x128 v=bf16/32x16x512x128 lse=? right=0 ; name=fa3.d128.s512.causal
attention_forward q=bf16/32x16x512x128 k=bf16/32x16x512x128 v=bf16/32x16x512x128 lse=? ; name=fa3.d128.s512.full
attention_forward q=bf16/16x16x1024x128 k=bf16/16x16x1024x128 v=bf16/16x16x1024x128 lse=? right=0 ; name=fa3.d128.s1024.causal
attention_forward q=bf16/16x16x1024x128 k=bf16/16x16x1024x128 v=bf16/16x16x1024x128 lse=? ; name=fa3.d128.s1024.full
attention_forward q=bf16/8x16x2048x128 k=bf16/8x16x2048x128 v=bf16/8x16x2048x128 lse=? right=0 ; name=fa3.d128.s2048.causal
attention_forward q=bf16/8x16x2048x128 k=bf16/8x16x2048x128 v=bf16/8x16x2048x128 lse=? ; name=fa3.d128.s2048.full
attention_forward q=bf16/4x16x4096x128 k=bf16/4x16x4096x128 v=bf16/4x16x4096x128 lse=? right=0 ; name=fa3.d128.s4096.causal
attention_forward q=bf16/4x16x4096x128 k=bf16/4x16x4096x128 v=bf16/4x16x4096x128 lse=? ; name=fa3.d128.s4096.full
attention_forward q=bf16/2x16x8192x128 k=bf16/2x16x8192x128 v=bf16/2x16x8192x128 lse=? right=0 ; name=fa3.d128.s8192.causal
attention_forward q=bf16/2x16x8192x128 k=bf16/2x16x8192x128 v=bf16/2x16x8192x128 lse=? ; name=fa3.d128.s8192.full
attention_forward q=bf16/1x16x16384x128 k=bf16/1x16x16384x128 v=bf16/1x16x16384x128 lse=? right=0 ; name=fa3.d128.s16384.causal
attention_forward q=bf16/1x16x16384x128 k=bf16/1x16x16384x128 v=bf16/1x16x16384x128 lse=? ; name=fa3.d128.s16384.full
attention_forward q=bf16/32x8x512x256 k=bf16/32x8x512x256 v=bf16/32x8x512x256 lse=? right=0 ; name=fa3.d256.s512.causal
attention_forward q=bf16/32x8x512x256 k=bf16/32x8x512x256 v=bf16/32x8x512x256 lse=? ; name=fa3.d256.s512.full
attention_forward q=bf16/16x8x1024x256 k=bf16/16x8x1024x256 v=bf16/16x8x1024x256 lse=? right=0 ; name=fa3.d256.s1024.causal
attention_forward q=bf16/16x8x1024x256 k=bf16/16x8x1024x256 v=bf16/16x8x1024x256 lse=? ; name=fa3.d256.s1024.full
attention_forward q=bf16/8x8x2048x256 k=bf16/8x8x2048x256 v=bf16/8x8x2048x256 lse=? right=0 ; name=fa3.d256.s2048.causal
attention_forward q=bf16/8x8x2048x256 k=bf16/8x8x2048x256 v=bf16/8x8x2048x256 lse=? ; name=fa3.d256.s2048.full
attention_forward q=bf16/4x8x4096x256 k=bf16/4x8x4096x256 v=bf16/4x8x4096x256 lse=? right=0 ; name=fa3.d256.s4096.causal
attention_forward q=bf16/4x8x4096x256 k=bf16/4x8x4096x256 v=bf16/4x8x4096x256 lse=? ; name=fa3.d256.s4096.full
attention_forward q=bf16/2x8x8192x256 k=bf16/2x8x8192x256 v=bf16/2x8x8192x256 lse=? right=0 ; name=fa3.d256.s8192.causal
attention_forward q=bf16/2x8x8192x256 k=bf16/2x8x8192x256 v=bf16/2x8x8192x256 lse=? ; name=fa3.d256.s8192.full
attention_forward q=bf16/1x8x16384x256 k=bf16/1x8x16384x256 v=bf16/1x8x16384x256 lse=? right=0 ; name=fa3.d256.s16384.causal
attention_forward q=bf16/1x8x16384x256 k=bf16/1x8x16384x256 v=bf16/1x8x16384x256 lse=? ; name=fa3.d256.s16384.full
attention_backward dy=bf16/32x32x512x64 q=bf16/32x32x512x64 k=bf16/32x32x512x64 v=bf16/32x32x512x64 y=bf16/32x32x512x64 lse=f32/32x32x512 dv=? right=0 ; name=fa3.d64.s512.causal.backward
attention_backward dy=bf16/32x32x512x64 q=bf16/32x32x512x64 k=bf16/32x32x512x64 v=bf16/32x32x512x64 y=bf16/32x32x512x64 lse=f32/32x32x512 dv=? ; name=fa3.d64.s512.full.backward
attention_backward dy=bf16/16x32x1024x64 q=bf16/16x32x1024x64 k=bf16/16x32x1024x64 v=bf16/16x32x1024x64 y=bf16/16x32x1024x64 lse=f32/16x32x1024 dv=? right=0 ; name=fa3.d64.s1024.causal.backward
attention_backward dy=bf16/16x32x1024x64 q=bf16/16x32x1024x64 k=bf16/16x32x1024x64 v=bf16/16x32x1024x64 y=bf16/16x32x1024x64 lse=f32/16x32x1024 dv=? ; name=fa3.d64.s1024.full.backward
attention_backward dy=bf16/8x32x2048x64 q=bf16/8x32x2048x64 k=bf16/8x32x2048x64 v=bf16/8x32x2048x64 y=bf16/8x32x2048x64 lse=f32/8x32x2048 dv=? right=0 ; name=fa3.d64.s2048.causal.backward
attention_backward dy=bf16/8x32x2048x64 q=bf16/8x32x2048x64 k=bf16/8x32x2048x64 v=bf16/8x32x2048x64 y=bf16/8x32x2048x64 lse=f32/8x32x2048 dv=? ; name=fa3.d64.s2048.full.backward
attention_backward dy=bf16/4x32x4096x64 q=bf16/4x32x4096x64 k=bf16/4x32x4096x64 v=bf16/4x32x4096x64 y=bf16/4x32x4096x64 lse=f32/4x32x4096 dv=? right=0 ; name=fa3.d64.s4096.causal.backward
attention_backward dy=bf16/4x32x4096x64 q=bf16/4x32x4096x64 k=bf16/4x32x4096x64 v=bf16/4x32x4096x64 y=bf16/4x32x4096x64 lse=f32/4x32x4096 dv=? ; name=fa3.d64.s4096.full.backward
attention_backward dy=bf16/2x32x8192x64 q=bf16/2x32x8192x64 k=bf16/2x32x8192x64 v=bf16/2x32x8192x64 y=bf16/2x32x8192x64 lse=f32/2x32x8192 dv=? right=0 ; name=fa3.d64.s8192.causal.backward
attention_backward dy=bf16/2x32x8192x64 q=bf16/2x32x8192x64 k=bf16/2x32x8192x64 v=bf16/2x32x8192x64 y=bf16/2x32x8192x64 lse=f32/2x32x8192 dv=? ; name=fa3.d64.s8192.full.backward
attention_backward dy=bf16/1x32x16384x64 q=bf16/1x32x16384x64 k=bf16/1x32x16384x64 v=bf16/1x32x16384x64 y=bf16/1x32x16384x64 lse=f32/1x32x16384 dv=? right=0 ; name=fa3.d64.s16384.causal.backward
attention_backward dy=bf16/1x32x16384x64 q=bf16/1x32x16384x64 k=bf16/1x32x16384x64 v=bf16/1x32x16384x64 y=bf16/1x32x16384x64 lse=f32/1x32x16384 dv=? ; name=fa3.d64.s16384.full.backward
attention_backward dy=bf16/32x16x512x128 q=bf16/32x16x512x128 k=bf16/32x16x512x128 v=bf16/32x16x512x128 y=bf16/32x16x512x128 lse=f32/32x16x512 dv=? right=0 ; name=fa3.d128.s512.causal.backward
attention_backward dy=bf16/32x16x512x128 q=bf16/32x16x512x128 k=bf16/32x16x512x128 v=bf16/32x16x512x128 y=bf16/32x16x512x128 lse=f32/32x16x512 dv=? ; name=fa3.d128.s512.full.backward
attention_backward dy=bf16/16x16x1024x128 q=bf16/16x16x1024x128 k=bf16/16x16x1024x128 v=bf16/16x16x1024x128 y=bf16/16x16x1024x128 lse=f32/16x16x1024 dv=? right=0 ; name=fa3.d128.s1024.causal.backward
attention_backward dy=bf16/16x16x1024x128 q=bf16/16x16x1024x128 k=bf16/16x16x1024x128 v=bf16/16x16x1024x128 y=bf16/16x16x1024x128 lse=f32/16x16x1024 dv=? ; name=fa3.d128.s1024.full.backward
attention_backward dy=bf16/8x16x2048x128 q=bf16/8x16x2048x128 k=bf16/8x16x2048x128 v=bf16/8x16x2048x128 y=bf16/8x16x2048x128 lse=f32/8x16x2048 dv=? right=0 ; name=fa3.d128.s2048.causal.backward
attention_backward dy=bf16/8x16x2048x128 q=bf16/8x16x2048x128 k=bf16/8x16x2048x128 v=bf16/8x16x2048x128 y=bf16/8x16x2048x128 lse=f32/8x16x2048 dv=? ; name=fa3.d128.s2048.full.backward
attention_backward dy=bf16/4x16x4096x128 q=bf16/4x16x4096x128 k=bf16/4x16x4096x128 v=bf16/4x16x4096x128 y=bf16/4x16x4096x128 lse=f32/4x16x4096 dv=? right=0 ; name=fa3.d128.s4096.causal.backward
attention_backward dy=bf16/4x16x4096x128 q=bf16/4x16x4096x128 k=bf16/4x16x4096x128 v=bf16/4x16x4096x128 y=bf16/4x16x4096x128 lse=f32/4x16x4096 dv=? ; name=fa3.d128.s4096.full.backward
attention_backward dy=bf16/2x16x8192x128 q=bf16/2x16x8192x128 k=bf16/2x16x8192x128 v=bf16/2x16x8192x128 y=bf16/2x16x8192x128 lse=f32/2x16x8192 dv=? right=0 ; name=fa3.d128.s8192.causal.backward
attention_backward dy=bf16/2x16x8192x128 q=bf16/2x16x8192x128 k=bf16/2x16x8192x128 v=bf16/2x16x8192x128 y=bf16/2x16x8192x128 lse=f32/2x16x8192 dv=? ; name=fa3.d128.s8192.full.backward
attention_backward dy=bf16/1x16x16384x128 q=bf16/1x16x16384x128 k=bf16/1x16x16384x128 v=bf16/1x16x16384x128 y=bf16/1x16x16384x128 lse=f32/1x16x16384 dv=? right=0 ; name=fa3.d128.s16384.causal.backward
attention_backward dy=bf16/1x16x16384x128 q=bf16/1x16x16384x128 k=bf16/1x16x16384x128 v=bf16/1x16x16384x128 y=bf16/1x16x16384x128 lse=f32/1x16x16384 dv=? ; name=fa3.d128.s16384.full.backward

# models: Llama-2-7B, Llama-3.1-405B (a share of 16 heads), GPT-2 124M, DeepSeek V3 prefill, gpt-oss
attention_forward q=bf16/1x32x4096x128 k=bf16/1x32x4096x128 v=bf16/1x32x4096x128 lse=? right=0 ; name=llama2_7b.s4096
attention_backward dy=bf16/1x32x4096x128 q=bf16/1x32x4096x128 k=bf16/1x32x4096x128 v=bf16/1x32x4096x128 y=bf16/1x32x4096x128 lse=f32/1x32x4096 dv=? right=0 ; name=llama2_7b.s4096.backward
attention_forward q=bf16/1x128x8192x128 k=bf16/1x8x8192x128 v=bf16/1x8x8192x128 lse=? right=0 ; name=llama31_405b.s8192
attention_backward dy=bf16/1x128x8192x128 q=bf16/1x128x8192x128 k=bf16/1x8x8192x128 v=bf16/1x8x8192x128 y=bf16/1x128x8192x128 lse=f32/1x128x8192 dv=? right=0 ; name=llama31_405b.s8192.backward
attention_forward q=bf16/64x12x1024x64 k=bf16/64x12x1024x64 v=bf16/64x12x1024x64 lse=? right=0 ; name=gpt2.b64.s1024
attention_backward dy=bf16/64x12x1024x64 q=bf16/64x12x1024x64 k=bf16/64x12x1024x64 v=bf16/64x12x1024x64 y=bf16/64x12x1024x64 lse=f32/64x12x1024 dv=? right=0 ; name=gpt2.b64.s1024.backward
attention_forward q=bf16/1x128x2048x192 k=bf16/1x128x2048x192 v=bf16/1x128x2048x128 lse=? right=0 ; name=deepseek.prefill.s2048
attention_backward dy=bf16/1x128x2048x128 q=bf16/1x128x2048x192 k=bf16/1x128x2048x192 v=bf16/1x128x2048x128 y=bf16/1x128x2048x128 lse=f32/1x128x2048 dv=? right=0 ; name=deepseek.prefill.s2048.backward
attention_forward q=bf16/1x128x4096x192 k=bf16/1x128x4096x192 v=bf16/1x128x4096x128 lse=? right=0 ; name=deepseek.prefill.s4096
attention_backward dy=bf16/1x128x4096x128 q=bf16/1x128x4096x192 k=bf16/1x128x4096x192 v=bf16/1x128x4096x128 y=bf16/1x128x4096x128 lse=f32/1x128x4096 dv=? right=0 ; name=deepseek.prefill.s4096.backward
attention_forward q=bf16/1x128x8192x192 k=bf16/1x128x8192x192 v=bf16/1x128x8192x128 lse=? right=0 ; name=deepseek.prefill.s8192
attention_backward dy=bf16/1x128x8192x128 q=bf16/1x128x8192x192 k=bf16/1x128x8192x192 v=bf16/1x128x8192x128 y=bf16/1x128x8192x128 lse=f32/1x128x8192 dv=? right=0 ; name=deepseek.prefill.s8192.backward
attention_forward q=bf16/2x64x2048x64 k=bf16/2x8x2048x64 v=bf16/2x8x2048x64 lse=? left=1024 right=0 ; name=gpt_oss.s2048
attention_backward dy=bf16/2x64x2048x64 q=bf16/2x64x2048x64 k=bf16/2x8x2048x64 v=bf16/2x8x2048x64 y=bf16/2x64x2048x64 lse=f32/2x64x2048 dv=? left=1024 right=0 ; name=gpt_oss.s2048.backward
attention_forward q=bf16/2x64x8192x64 k=bf16/2x8x8192x64 v=bf16/2x8x8192x64 lse=? left=1024 right=0 ; name=gpt_oss.s8192
attention_backward dy=bf16/2x64x8192x64 q=bf16/2x64x8192x64 k=bf16/2x8x8192x64 v=bf16/2x8x8192x64 y=bf16/2x64x8192x64 lse=f32/2x64x8192 dv=? left=1024 right=0 ; name=gpt_oss.s8192.backward
attention_forward q=bf16/2x64x32768x64 k=bf16/2x8x32768x64 v=bf16/2x8x32768x64 lse=? left=1024 right=0 ; name=gpt_oss.s32768
attention_backward dy=bf16/2x64x32768x64 q=bf16/2x64x32768x64 k=bf16/2x8x32768x64 v=bf16/2x8x32768x64 y=bf16/2x64x32768x64 lse=f32/2x64x32768 dv=? left=1024 right=0 ; name=gpt_oss.s32768.backward

# decoding: batch 16, and latent attention with its values in the keys, from pages of 64
attention_forward q=bf16/16x32x1x128 k=bf16/16x32x4096x128 v=bf16/16x32x4096x128 lse=? ; name=decode.h32.kv4096
attention_forward q=bf16/16x64x1x128 k=bf16/16x8x4096x128 v=bf16/16x8x4096x128 lse=? ; name=decode.h64_8.kv4096
attention_forward q=bf16/16x32x1x128 k=bf16/16x32x32768x128 v=bf16/16x32x32768x128 lse=? ; name=decode.h32.kv32768
attention_forward q=bf16/16x64x1x128 k=bf16/16x8x32768x128 v=bf16/16x8x32768x128 lse=? ; name=decode.h64_8.kv32768
attention_forward q=bf16/16x128x1x576 k=bf16/1024x1x64x576 pages=i32/16x64 kv_lengths=i32/16 value_size=512 lse=? ; name=decode.latent.b16.kv4096
attention_forward q=bf16/128x128x1x576 k=bf16/8192x1x64x576 pages=i32/128x64 kv_lengths=i32/128 value_size=512 lse=? ; name=decode.latent.b128.kv4096
attention_forward q=bf16/1x128x1024x576 k=bf16/1x1x4096x576 value_size=512 right=0 lse=? ; name=latent.prefill.kv4096
attention_forward q=bf16/1x1x4096x512 k=bf16/1x1x4096x512 v=bf16/1x1x4096x512 ; name=vae.d512.s4096
attention_forward q=bf16/16x64x1x128 k=bf16/1024x8x64x128/65536:128:1024:1 v=bf16/1024x8x64x128/65536:128:1024:1 pages=i32/16x64 kv_lengths=i32/16 ; name=decode.paged.h64_8.kv4096

# ragged sequences; 8-bit operands with a scale for each key head
attention_forward q=bf16/1x32x16384x128 k=bf16/1x8x16384x128 v=bf16/1x8x16384x128 q_starts=i32/17 kv_starts=i32/17 right=0 lse=? ; name=ragged.16.causal
attention_forward q=bf16/1x16x16384x64 k=bf16/1x16x16384x64 v=bf16/1x16x16384x64 q_starts=i32/65 kv_starts=i32/65 lse=? ; name=ragged.64.d64.full
attention_forward q=e4m3/1x64x8192x128 k=e4m3/1x8x8192x128 v=e4m3/1x8x8192x128 q_scale=f32/1x64x1x1 k_scale=f32/1x8x1x1 v_scale=f32/1x8x1x1 y=bf16/1x64x8192x128 right=0 ; name=e4m3.h64_8.d128.s8192.causal

# for a CPU
attention_forward q=f32/1x12x384x64 k=f32/1x12x384x64 v=f32/1x12x384x64 lse=? ; name=cpu.bert.f32
attention_forward q=f32/1x32x512x128 k=f32/1x32x512x128 v=f32/1x32x512x128 lse=? ; name=cpu.h32.d128.f32
attention_forward q=f32/1x32x1x128 k=f32/1x32x513x128 v=f32/1x32x513x128 lse=? ; name=cpu.decode.f32
attention_forward q=f32/8x16x1024x64 k=f32/8x16x1024x64 v=f32/8x16x1024x64 lse=? right=0 ; name=cpu.b8.s1024.causal.f32
attention_backward dy=f32/1x12x384x64 q=f32/1x12x384x64 k=f32/1x12x384x64 v=f32/1x12x384x64 y=f32/1x12x384x64 lse=f32/1x12x384 dv=? ; name=cpu.bert.f32.backward
attention_backward dy=f32/1x32x512x128 q=f32/1x32x512x128 k=f32/1x32x512x128 v=f32/1x32x512x128 y=f32/1x32x512x128 lse=f32/1x32x512 dv=? ; name=cpu.h32.d128.f32.backward
attention_backward dy=f32/8x16x1024x64 q=f32/8x16x1024x64 k=f32/8x16x1024x64 v=f32/8x16x1024x64 y=f32/8x16x1024x64 lse=f32/8x16x1024 dv=? right=0 ; name=cpu.b8.s1024.causal.f32.backward
attention_forward q=bf16/1x12x384x64 k=bf16/1x12x384x64 v=bf16/1x12x384x64 lse=? ; name=cpu.bert.bf16
attention_forward q=bf16/1x32x512x128 k=bf16/1x32x512x128 v=bf16/1x32x512x128 lse=? ; name=cpu.h32.d128.bf16
attention_forward q=bf16/1x32x1x128 k=bf16/1x32x513x128 v=bf16/1x32x513x128 lse=? ; name=cpu.decode.bf16
attention_forward q=bf16/8x16x1024x64 k=bf16/8x16x1024x64 v=bf16/8x16x1024x64 lse=? right=0 ; name=cpu.b8.s1024.causal.bf16
attention_backward dy=bf16/1x12x384x64 q=bf16/1x12x384x64 k=bf16/1x12x384x64 v=bf16/1x12x384x64 y=bf16/1x12x384x64 lse=f32/1x12x384 dv=? ; name=cpu.bert.bf16.backward
attention_backward dy=bf16/1x32x512x128 q=bf16/1x32x512x128 k=bf16/1x32x512x128 v=bf16/1x32x512x128 y=bf16/1x32x512x128 lse=f32/1x32x512 dv=? ; name=cpu.h32.d128.bf16.backward
attention_backward dy=bf16/8x16x1024x64 q=bf16/8x16x1024x64 k=bf16/8x16x1024x64 v=bf16/8x16x1024x64 y=bf16/8x16x1024x64 lse=f32/8x16x1024 dv=? right=0 ; name=cpu.b8.s1024.causal.bf16.backward

# rotary embeddings, cache writes, merges
rotary x=bf16/1x64x8192x128/67108864:128:8192:1 cos=f32/8192x64 sin=f32/8192x64 ; name=rotary.h64.s8192
rotary x=bf16/64x40x1x128 cos=f32/8192x64 sin=f32/8192x64 positions=i32/64x1 ; name=rotary.decode
rotary_backward dy=bf16/1x64x8192x128/67108864:128:8192:1 cos=f32/8192x64 sin=f32/8192x64 ; name=rotary.h64.s8192.backward
cache_write cache=bf16/4096x8x16x128 x=bf16/64x8x1x128 slots=i32/64x1 new_cache=cache ; name=cache_write.decode
cache_write cache=bf16/4096x8x16x128 x=bf16/1x8x8192x128/8388608:128:1024:1 slots=i32/1x8192 new_cache=cache ; name=cache_write.prefill
cache_write cache=e4m3/4096x8x16x128 x=bf16/64x8x1x128 slots=i32/64x1 scale=f32/1x8x1x1 new_cache=cache ; name=cache_write.decode.e4m3
cache_write cache=e4m3/4096x8x16x128 x=bf16/1x8x8192x128/8388608:128:1024:1 slots=i32/1x8192 scale=f32/1x8x1x1 new_cache=cache ; name=cache_write.prefill.e4m3
attention_merge y1=bf16/1x64x8192x128 lse1=f32/1x64x8192 y2=bf16/1x64x8192x128 lse2=f32/1x64x8192 lse=? ; name=merge.h64.s8192

# training: weights dropped, a bias that learns (T5), sequences side by side
attention_forward q=bf16/8x16x1024x64 k=bf16/8x16x1024x64 v=bf16/8x16x1024x64 seed=1 dropout=0.1 lse=? ; name=dropout.b8.s1024
attention_backward dy=bf16/8x16x1024x64 q=bf16/8x16x1024x64 k=bf16/8x16x1024x64 v=bf16/8x16x1024x64 y=bf16/8x16x1024x64 lse=f32/8x16x1024 seed=1 dv=? dropout=0.1 ; name=dropout.b8.s1024.backward
attention_forward q=bf16/8x12x512x64 k=bf16/8x12x512x64 v=bf16/8x12x512x64 bias=bf16/1x12x512x512 lse=? scale=1 ; name=t5.b8.s512
attention_backward dy=bf16/8x12x512x64 q=bf16/8x12x512x64 k=bf16/8x12x512x64 v=bf16/8x12x512x64 y=bf16/8x12x512x64 lse=f32/8x12x512 bias=bf16/1x12x512x512 dv=? dbias=? scale=1 ; name=t5.b8.s512.backward
attention_backward dy=bf16/8x16x1024x64 q=bf16/8x16x1024x64 k=bf16/8x16x1024x64 v=bf16/8x16x1024x64 y=bf16/8x16x1024x64 lse=f32/8x16x1024 bias=bf16/1x1x1x1024 dv=? dbias=? ; name=key_bias.b8.s1024.backward
attention_backward dy=bf16/1x32x16384x128 q=bf16/1x32x16384x128 k=bf16/1x8x16384x128 v=bf16/1x8x16384x128 y=bf16/1x32x16384x128 lse=f32/1x32x16384 q_starts=i32/17 kv_starts=i32/17 dv=? right=0 ; name=ragged.16.causal.backward

# between the projection and attention: heads of queries and keys normed and turned, keys written into their pages (Qwen3; Llama)
in p bf16/16x1x80x128
in gq bf16/1x1x1x128
in gk bf16/1x1x1x128
in c f32/8192x64
in s f32/8192x64
in at i32/16x1
in cache bf16/512x8x64x128
in slot i32/16x1
pq = slice x=p start=0,0,0,0 length=16,1,64,128
vq = permute x=pq perm=0,2,1,3
tq = rms_norm x=vq scale=gq
out rq = rotary x=tq cos=c sin=s positions=at
pk = slice x=p start=0,0,64,0 length=16,1,8,128
vk = permute x=pk perm=0,2,1,3
tk = rms_norm x=vk scale=gk
rk = rotary x=tk cos=c sin=s positions=at
out kept over cache = cache_write cache=cache x=rk slots=slot ; name=chain.qwen3.decode.b16

in p bf16/1x4096x80x128
in gq bf16/1x1x1x128
in gk bf16/1x1x1x128
in c f32/8192x64
in s f32/8192x64
in at i32/1x4096
in cache bf16/512x8x64x128
in slot i32/1x4096
pq = slice x=p start=0,0,0,0 length=1,4096,64,128
vq = permute x=pq perm=0,2,1,3
tq = rms_norm x=vq scale=gq
out rq = rotary x=tq cos=c sin=s positions=at
pk = slice x=p start=0,0,64,0 length=1,4096,8,128
vk = permute x=pk perm=0,2,1,3
tk = rms_norm x=vk scale=gk
rk = rotary x=tk cos=c sin=s positions=at
out kept over cache = cache_write cache=cache x=rk slots=slot ; name=chain.qwen3.prefill.s4096

in p bf16/16x1x80x128
in c f32/8192x64
in s f32/8192x64
in at i32/16x1
in cache bf16/512x8x64x128
in slot i32/16x1
pq = slice x=p start=0,0,0,0 length=16,1,64,128
tq = permute x=pq perm=0,2,1,3
out rq = rotary x=tq cos=c sin=s positions=at
pk = slice x=p start=0,0,64,0 length=16,1,8,128
tk = permute x=pk perm=0,2,1,3
rk = rotary x=tk cos=c sin=s positions=at
out kept over cache = cache_write cache=cache x=rk slots=slot ; name=chain.llama3.decode.b16

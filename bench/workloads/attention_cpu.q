# Attention at sizes for a CPU: BERT and GPT-2 small, a head size of 128, 80 and 40, causal and grouped; one token against its past. For
# bench/torch_peer.py.

attention_forward q=f32/1x12x384x64 k=f32/1x12x384x64 v=f32/1x12x384x64 ; name=bert.384.f32
attention_forward q=f32/1x32x512x128 k=f32/1x32x512x128 v=f32/1x32x512x128 ; name=h32.512.f32
attention_forward q=f32/8x16x1024x64 k=f32/8x16x1024x64 v=f32/8x16x1024x64 right=0 align=top_left ; name=gpt2.1024.f32
attention_forward q=f32/1x32x512x128 k=f32/1x8x512x128 v=f32/1x8x512x128 right=0 align=top_left ; name=gqa.512.f32
attention_forward q=f32/1x8x1024x80 k=f32/1x8x1024x80 v=f32/1x8x1024x80 ; name=d80.1024.f32
attention_forward q=f32/2x8x512x40 k=f32/2x8x512x40 v=f32/2x8x512x40 ; name=d40.512.f32
attention_forward q=f32/16x12x128x64 k=f32/16x12x128x64 v=f32/16x12x128x64 ; name=short.128.f32
attention_forward q=f32/1x32x1x128 k=f32/1x32x513x128 v=f32/1x32x513x128 ; name=token.513.f32
attention_forward q=f32/4x32x1x128 k=f32/4x8x4096x128 v=f32/4x8x4096x128 ; name=token.gqa.4096.f32
attention_forward q=bf16/1x12x384x64 k=bf16/1x12x384x64 v=bf16/1x12x384x64 ; name=bert.384.bf16
attention_forward q=bf16/1x32x512x128 k=bf16/1x32x512x128 v=bf16/1x32x512x128 ; name=h32.512.bf16
attention_forward q=bf16/8x16x1024x64 k=bf16/8x16x1024x64 v=bf16/8x16x1024x64 right=0 align=top_left ; name=gpt2.1024.bf16
attention_forward q=bf16/1x32x512x128 k=bf16/1x8x512x128 v=bf16/1x8x512x128 right=0 align=top_left ; name=gqa.512.bf16
attention_forward q=bf16/1x8x1024x80 k=bf16/1x8x1024x80 v=bf16/1x8x1024x80 ; name=d80.1024.bf16
attention_forward q=bf16/2x8x512x40 k=bf16/2x8x512x40 v=bf16/2x8x512x40 ; name=d40.512.bf16
attention_forward q=bf16/16x12x128x64 k=bf16/16x12x128x64 v=bf16/16x12x128x64 ; name=short.128.bf16
attention_forward q=bf16/1x32x1x128 k=bf16/1x32x513x128 v=bf16/1x32x513x128 ; name=token.513.bf16
attention_forward q=bf16/4x32x1x128 k=bf16/4x8x4096x128 v=bf16/4x8x4096x128 ; name=token.gqa.4096.bf16

attention_backward dy=f32/1x12x384x64 q=f32/1x12x384x64 k=f32/1x12x384x64 v=f32/1x12x384x64 y=f32/1x12x384x64 lse=f32/1x12x384 dv=? ; name=backward.bert.384.f32
attention_backward dy=f32/1x32x512x128 q=f32/1x32x512x128 k=f32/1x32x512x128 v=f32/1x32x512x128 y=f32/1x32x512x128 lse=f32/1x32x512 dv=? ; name=backward.h32.512.f32
attention_backward dy=f32/8x16x1024x64 q=f32/8x16x1024x64 k=f32/8x16x1024x64 v=f32/8x16x1024x64 y=f32/8x16x1024x64 lse=f32/8x16x1024 dv=? right=0 align=top_left ; name=backward.gpt2.1024.f32
attention_backward dy=f32/1x32x512x128 q=f32/1x32x512x128 k=f32/1x8x512x128 v=f32/1x8x512x128 y=f32/1x32x512x128 lse=f32/1x32x512 dv=? right=0 align=top_left ; name=backward.gqa.512.f32
attention_backward dy=f32/1x8x1024x80 q=f32/1x8x1024x80 k=f32/1x8x1024x80 v=f32/1x8x1024x80 y=f32/1x8x1024x80 lse=f32/1x8x1024 dv=? ; name=backward.d80.1024.f32
attention_backward dy=f32/16x12x128x64 q=f32/16x12x128x64 k=f32/16x12x128x64 v=f32/16x12x128x64 y=f32/16x12x128x64 lse=f32/16x12x128 dv=? ; name=backward.short.128.f32
attention_backward dy=bf16/1x12x384x64 q=bf16/1x12x384x64 k=bf16/1x12x384x64 v=bf16/1x12x384x64 y=bf16/1x12x384x64 lse=f32/1x12x384 dv=? ; name=backward.bert.384.bf16
attention_backward dy=bf16/1x32x512x128 q=bf16/1x32x512x128 k=bf16/1x32x512x128 v=bf16/1x32x512x128 y=bf16/1x32x512x128 lse=f32/1x32x512 dv=? ; name=backward.h32.512.bf16
attention_backward dy=bf16/8x16x1024x64 q=bf16/8x16x1024x64 k=bf16/8x16x1024x64 v=bf16/8x16x1024x64 y=bf16/8x16x1024x64 lse=f32/8x16x1024 dv=? right=0 align=top_left ; name=backward.gpt2.1024.bf16
attention_backward dy=bf16/1x32x512x128 q=bf16/1x32x512x128 k=bf16/1x8x512x128 v=bf16/1x8x512x128 y=bf16/1x32x512x128 lse=f32/1x32x512 dv=? right=0 align=top_left ; name=backward.gqa.512.bf16
attention_backward dy=bf16/1x8x1024x80 q=bf16/1x8x1024x80 k=bf16/1x8x1024x80 v=bf16/1x8x1024x80 y=bf16/1x8x1024x80 lse=f32/1x8x1024 dv=? ; name=backward.d80.1024.bf16
attention_backward dy=bf16/16x12x128x64 q=bf16/16x12x128x64 k=bf16/16x12x128x64 v=bf16/16x12x128x64 y=bf16/16x12x128x64 lse=f32/16x12x128 dv=? ; name=backward.short.128.bf16

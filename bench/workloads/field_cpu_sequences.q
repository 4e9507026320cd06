# Attention and recurrent networks of the field at sizes for one thread of a CPU: field_attention.q and field_rnn.q with fewer sequences,
# f32 and bf16, forward and backward.

# images, text, speech: 49 to 577 tokens
attention_forward q=f32/1x12x197x64/453888:64:2304:1 k=f32/1x12x197x64/453888:64:2304:1 v=f32/1x12x197x64/453888:64:2304:1 y=f32/1x12x197x64/151296:64:768:1 lse=? ; name=vit_b16.f32
attention_backward dy=f32/1x12x197x64/151296:64:768:1 q=f32/1x12x197x64/453888:64:2304:1 k=f32/1x12x197x64/453888:64:2304:1 v=f32/1x12x197x64/453888:64:2304:1 y=f32/1x12x197x64/151296:64:768:1 lse=f32/1x12x197 dq=f32/1x12x197x64/151296:64:768:1 dk=f32/1x12x197x64/151296:64:768:1 dv=f32/1x12x197x64/151296:64:768:1 ; name=vit_b16.f32.backward
attention_forward q=bf16/1x12x197x64/453888:64:2304:1 k=bf16/1x12x197x64/453888:64:2304:1 v=bf16/1x12x197x64/453888:64:2304:1 y=bf16/1x12x197x64/151296:64:768:1 ; name=vit_b16.bf16
attention_forward q=f16/1x12x197x64/453888:64:2304:1 k=f16/1x12x197x64/453888:64:2304:1 v=f16/1x12x197x64/453888:64:2304:1 y=f16/1x12x197x64/151296:64:768:1 ; name=vit_b16.f16
attention_forward q=f32/1x8x257x80/164480:80:640:1 k=f32/1x8x257x80/164480:80:640:1 v=f32/1x8x257x80/164480:80:640:1 y=f32/1x8x257x80/164480:80:640:1 lse=? ; name=vit_h14.f32
attention_backward dy=f32/1x8x257x80/164480:80:640:1 q=f32/1x8x257x80/164480:80:640:1 k=f32/1x8x257x80/164480:80:640:1 v=f32/1x8x257x80/164480:80:640:1 y=f32/1x8x257x80/164480:80:640:1 lse=f32/1x8x257 dq=f32/1x8x257x80/164480:80:640:1 dk=f32/1x8x257x80/164480:80:640:1 dv=f32/1x8x257x80/164480:80:640:1 ; name=vit_h14.f32.backward
attention_forward q=f32/1x4x577x64/443136:64:768:1 k=f32/1x4x577x64/443136:64:768:1 v=f32/1x4x577x64/443136:64:768:1 y=f32/1x4x577x64/147712:64:256:1 ; name=vit_l14_336.f32
attention_forward q=f32/64x3x49x32 k=f32/64x3x49x32 v=f32/64x3x49x32 bias=f32/1x3x49x49 ; name=swin_t.stage1.f32
attention_forward q=bf16/64x3x49x32 k=bf16/64x3x49x32 v=bf16/64x3x49x32 bias=bf16/1x3x49x49 ; name=swin_t.stage1.bf16
attention_forward q=f32/8x16x49x32 k=f32/8x16x49x32 v=f32/8x16x49x32 bias=f32/1x16x49x49 lse=? ; name=swin_b.stage3.f32
attention_backward dy=f32/8x16x49x32 q=f32/8x16x49x32 k=f32/8x16x49x32 v=f32/8x16x49x32 bias=f32/1x16x49x49 y=f32/8x16x49x32 lse=f32/8x16x49 dv=? ; name=swin_b.stage3.f32.backward
attention_forward q=f32/64x3x49x32 k=f32/64x3x49x32 v=f32/64x3x49x32 bias=f32/64x3x49x49 ; name=swin.shifted.f32
attention_forward q=f32/1x2x1024x64 k=f32/1x2x1024x64 v=f32/1x2x1024x64 bias=f32/1x2x1024x1024 ; name=sam.global.f32
attention_forward q=f32/1x12x128x64/98304:64:768:1 k=f32/1x12x128x64/98304:64:768:1 v=f32/1x12x128x64/98304:64:768:1 y=f32/1x12x128x64/98304:64:768:1 lse=? ; name=bert_base.s128.f32
attention_backward dy=f32/1x12x128x64/98304:64:768:1 q=f32/1x12x128x64/98304:64:768:1 k=f32/1x12x128x64/98304:64:768:1 v=f32/1x12x128x64/98304:64:768:1 y=f32/1x12x128x64/98304:64:768:1 lse=f32/1x12x128 dq=f32/1x12x128x64/98304:64:768:1 dk=f32/1x12x128x64/98304:64:768:1 dv=f32/1x12x128x64/98304:64:768:1 ; name=bert_base.s128.f32.backward
attention_forward q=bf16/1x12x128x64/98304:64:768:1 k=bf16/1x12x128x64/98304:64:768:1 v=bf16/1x12x128x64/98304:64:768:1 y=bf16/1x12x128x64/98304:64:768:1 ; name=bert_base.s128.bf16
attention_forward q=bf16/1x12x128x64 k=bf16/1x12x128x64 v=bf16/1x12x128x64 mask=bool/1x1x1x128 ; name=bert_base.mask.s128.bf16
attention_forward q=f32/1x4x512x64 k=f32/1x4x512x64 v=f32/1x4x512x64 mask=bool/1x1x1x512 lse=? ; name=bert_base.s512.mask.f32
attention_backward dy=f32/1x4x512x64 q=f32/1x4x512x64 k=f32/1x4x512x64 v=f32/1x4x512x64 mask=bool/1x1x1x512 y=f32/1x4x512x64 lse=f32/1x4x512 dv=? ; name=bert_base.s512.mask.f32.backward
attention_forward q=bf16/1x4x384x64 k=bf16/1x4x384x64 v=bf16/1x4x384x64 mask=bool/1x1x1x384 ; name=bert_base.s384.mask.bf16
attention_forward q=f32/16x12x32x32/12288:32:384:1 k=f32/16x12x32x32/12288:32:384:1 v=f32/16x12x32x32/12288:32:384:1 y=f32/16x12x32x32/12288:32:384:1 lse=? ; name=minilm.s32.f32
attention_backward dy=f32/16x12x32x32/12288:32:384:1 q=f32/16x12x32x32/12288:32:384:1 k=f32/16x12x32x32/12288:32:384:1 v=f32/16x12x32x32/12288:32:384:1 y=f32/16x12x32x32/12288:32:384:1 lse=f32/16x12x32 dq=f32/16x12x32x32/12288:32:384:1 dk=f32/16x12x32x32/12288:32:384:1 dv=f32/16x12x32x32/12288:32:384:1 ; name=minilm.s32.f32.backward
attention_forward q=f32/1x4x512x64 k=f32/1x4x512x64 v=f32/1x4x512x64 bias=f32/1x4x512x512 scale=1 ; name=t5_base.f32
attention_forward q=f32/2x4x333x48 k=f32/2x4x333x48 v=f32/2x4x333x48 mask=bool/2x1x333x333 ; name=ragged.s333.f32
attention_forward q=f32/1x2x1500x64 k=f32/1x2x1500x64 v=f32/1x2x1500x64 ; name=whisper_t.encoder.f32

# causal
attention_forward q=f32/4x8x77x64 k=f32/4x8x77x64 v=f32/4x8x77x64 lse=? right=0 ; name=clip_text.f32
attention_backward dy=f32/4x8x77x64 q=f32/4x8x77x64 k=f32/4x8x77x64 v=f32/4x8x77x64 y=f32/4x8x77x64 lse=f32/4x8x77 dv=? right=0 ; name=clip_text.f32.backward
attention_forward q=f32/1x3x1024x64/589824:64:576:1 k=f32/1x3x1024x64/589824:64:576:1 v=f32/1x3x1024x64/589824:64:576:1 y=f32/1x3x1024x64/196608:64:192:1 lse=? right=0 ; name=gpt2.s1024.f32
attention_backward dy=f32/1x3x1024x64/196608:64:192:1 q=f32/1x3x1024x64/589824:64:576:1 k=f32/1x3x1024x64/589824:64:576:1 v=f32/1x3x1024x64/589824:64:576:1 y=f32/1x3x1024x64/196608:64:192:1 lse=f32/1x3x1024 dq=f32/1x3x1024x64/196608:64:192:1 dk=f32/1x3x1024x64/196608:64:192:1 dv=f32/1x3x1024x64/196608:64:192:1 right=0 ; name=gpt2.s1024.f32.backward
attention_forward q=bf16/1x3x1024x64/589824:64:576:1 k=bf16/1x3x1024x64/589824:64:576:1 v=bf16/1x3x1024x64/589824:64:576:1 y=bf16/1x3x1024x64/196608:64:192:1 right=0 ; name=gpt2.s1024.bf16
attention_forward q=bf16/1x8x512x128/524288:128:1024:1 k=bf16/1x2x512x128/131072:128:256:1 v=bf16/1x2x512x128/131072:128:256:1 y=bf16/1x8x512x128/524288:128:1024:1 right=0 ; name=llama3_8b.s512.bf16
attention_forward q=f32/1x4x512x128/262144:128:512:1 k=f32/1x1x512x128/65536:128:128:1 v=f32/1x1x512x128/65536:128:128:1 y=f32/1x4x512x128/262144:128:512:1 right=0 ; name=llama3_8b.s512.f32
attention_forward q=f32/1x8x256x256/524288:256:2048:1 k=f32/1x1x256x256/65536:256:256:1 v=f32/1x1x256x256/65536:256:256:1 y=f32/1x8x256x256/524288:256:2048:1 lse=? right=0 ; name=gemma_2b.s256.f32
attention_backward dy=f32/1x8x256x256/524288:256:2048:1 q=f32/1x8x256x256/524288:256:2048:1 k=f32/1x1x256x256/65536:256:256:1 v=f32/1x1x256x256/65536:256:256:1 y=f32/1x8x256x256/524288:256:2048:1 lse=f32/1x8x256 dq=f32/1x8x256x256/524288:256:2048:1 dk=f32/1x1x256x256/65536:256:256:1 dv=f32/1x1x256x256/65536:256:256:1 right=0 ; name=gemma_2b.s256.f32.backward
attention_forward q=f32/64x4x16x16 k=f32/64x4x16x16 v=f32/64x4x16x16 ; name=d16.s16.f32
attention_forward q=f32/512x1x8x16 k=f32/512x1x8x16 v=f32/512x1x8x16 lse=? ; name=tiny.s8.f32
attention_backward dy=f32/512x1x8x16 q=f32/512x1x8x16 k=f32/512x1x8x16 v=f32/512x1x8x16 y=f32/512x1x8x16 lse=f32/512x1x8 dv=? ; name=tiny.s8.f32.backward

# diffusion: few keys, many rows
attention_forward q=f32/1x4x1024x40/163840:40:160:1 k=f32/1x4x1024x40/163840:40:160:1 v=f32/1x4x1024x40/163840:40:160:1 y=f32/1x4x1024x40/163840:40:160:1 lse=? ; name=sd15.self32.f32
attention_backward dy=f32/1x4x1024x40/163840:40:160:1 q=f32/1x4x1024x40/163840:40:160:1 k=f32/1x4x1024x40/163840:40:160:1 v=f32/1x4x1024x40/163840:40:160:1 y=f32/1x4x1024x40/163840:40:160:1 lse=f32/1x4x1024 dq=f32/1x4x1024x40/163840:40:160:1 dk=f32/1x4x1024x40/163840:40:160:1 dv=f32/1x4x1024x40/163840:40:160:1 ; name=sd15.self32.f32.backward
attention_forward q=f32/1x8x1024x80/655360:80:640:1 k=f32/1x8x77x80/49280:80:640:1 v=f32/1x8x77x80/49280:80:640:1 y=f32/1x8x1024x80/655360:80:640:1 lse=? ; name=sd15.cross32.f32
attention_backward dy=f32/1x8x1024x80/655360:80:640:1 q=f32/1x8x1024x80/655360:80:640:1 k=f32/1x8x77x80/49280:80:640:1 v=f32/1x8x77x80/49280:80:640:1 y=f32/1x8x1024x80/655360:80:640:1 lse=f32/1x8x1024 dq=f32/1x8x1024x80/655360:80:640:1 dk=f32/1x8x77x80/49280:80:640:1 dv=f32/1x8x77x80/49280:80:640:1 ; name=sd15.cross32.f32.backward
attention_forward q=bf16/1x8x1024x80/655360:80:640:1 k=bf16/1x8x77x80/49280:80:640:1 v=bf16/1x8x77x80/49280:80:640:1 y=bf16/1x8x1024x80/655360:80:640:1 ; name=sd15.cross32.bf16
attention_forward q=f32/1x8x256x160/327680:160:1280:1 k=f32/1x8x256x160/327680:160:1280:1 v=f32/1x8x256x160/327680:160:1280:1 y=f32/1x8x256x160/327680:160:1280:1 lse=? ; name=sd15.self16.f32
attention_backward dy=f32/1x8x256x160/327680:160:1280:1 q=f32/1x8x256x160/327680:160:1280:1 k=f32/1x8x256x160/327680:160:1280:1 v=f32/1x8x256x160/327680:160:1280:1 y=f32/1x8x256x160/327680:160:1280:1 lse=f32/1x8x256 dq=f32/1x8x256x160/327680:160:1280:1 dk=f32/1x8x256x160/327680:160:1280:1 dv=f32/1x8x256x160/327680:160:1280:1 ; name=sd15.self16.f32.backward
attention_forward q=f32/1x8x100x32 k=f32/1x8x850x32 v=f32/1x8x850x32 lse=? ; name=detr.cross.f32
attention_backward dy=f32/1x8x100x32 q=f32/1x8x100x32 k=f32/1x8x850x32 v=f32/1x8x850x32 y=f32/1x8x100x32 lse=f32/1x8x100 dv=? ; name=detr.cross.f32.backward
attention_forward q=f32/8x8x256x64 k=f32/8x8x8x64 v=f32/8x8x8x64 lse=? ; name=cross.t8.f32
attention_backward dy=f32/8x8x256x64 q=f32/8x8x256x64 k=f32/8x8x8x64 v=f32/8x8x8x64 y=f32/8x8x256x64 lse=f32/8x8x256 dv=? ; name=cross.t8.f32.backward

# generation: one query a sequence, a few, a chunk
attention_forward q=bf16/1x32x1x128 k=bf16/1x8x512x128 v=bf16/1x8x512x128 ; name=decode.llama3_8b.kv512.bf16
attention_forward q=bf16/1x32x1x128 k=bf16/1x8x2048x128 v=bf16/1x8x2048x128 ; name=decode.llama3_8b.kv2048.bf16
attention_forward q=f32/1x32x1x128 k=f32/1x8x2048x128 v=f32/1x8x2048x128 ; name=decode.llama3_8b.kv2048.f32
attention_forward q=bf16/1x32x1x128 k=bf16/1x8x8192x128 v=bf16/1x8x8192x128 ; name=decode.llama3_8b.kv8192.bf16
attention_forward q=f32/8x12x1x64 k=f32/8x12x300x64 v=f32/8x12x300x64 ; name=decode.gpt2.b8.kv300.f32
attention_forward q=bf16/1x8x1x256 k=bf16/1x1x2048x256 v=bf16/1x1x2048x256 ; name=decode.gemma_2b.kv2048.bf16
attention_forward q=f32/4x12x1x64 k=f32/4x12x1024x64 v=f32/4x12x1024x64 mask=bool/4x1x1x1024 ; name=decode.mask.kv1024.f32
attention_forward q=bf16/4x12x1x64 k=bf16/4x12x1024x64 v=bf16/4x12x1024x64 mask=bool/4x1x1x1024 ; name=decode.mask.kv1024.bf16
attention_forward q=f32/4x12x1x64 k=f32/4x12x1024x64 v=f32/4x12x1024x64 bias=f32/1x12x1x1024 ; name=decode.bias.kv1024.f32
attention_forward q=f32/1x12x4x64 k=f32/1x12x1024x64 v=f32/1x12x1024x64 ; name=beams.q4.kv1024.f32
attention_forward q=bf16/1x8x5x128 k=bf16/1x2x2048x128 v=bf16/1x2x2048x128 ; name=draft.q5.kv2048.bf16
attention_forward q=f32/1x4x64x128 k=f32/1x1x2048x128 v=f32/1x1x2048x128 ; name=chunk.q64.kv2048.f32
attention_forward q=f32/1x8x5x128 k=f32/1x2x2048x128 v=f32/1x2x2048x128 ; name=draft.q5.kv2048.f32
attention_forward q=f32/2x8x1x64 k=f32/2x8x1024x64/524288:65536:1:1024 v=f32/2x8x1024x64/524288:65536:1024:1 ; name=decode.k.turned.f32
attention_forward q=f32/5x12x1x64 k=f32/5x12x1500x64 v=f32/5x12x1500x64 ; name=whisper.decode.cross.f32

# recurrent networks: text, series, speech
rnn_forward x=f32/50x32x100 w=[f32/400x100,f32/400x100] r=[f32/400x100,f32/400x100] bw=[f32/400,f32/400] br=[f32/400,f32/400] direction=both ; name=tagger.h100.lstm.f32
rnn_backward dy=f32/50x32x200 x=f32/50x32x100 y=f32/50x32x200 w=[f32/400x100,f32/400x100] r=[f32/400x100,f32/400x100] gates=f32/2x50x32x400 cells=f32/2x50x32x100 dx=? dw=? dr=? dbw=? dbr=? direction=both ; name=tagger.h100.lstm.f32.backward
rnn_forward x=f32/100x32x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=imdb.h128.lstm.f32
rnn_backward dy=f32/100x32x128 x=f32/100x32x128 y=f32/100x32x128 w=[f32/512x128] r=[f32/512x128] gates=f32/1x100x32x512 cells=f32/1x100x32x128 dx=? dw=? dr=? dbw=? dbr=? ; name=imdb.h128.lstm.f32.backward
rnn_forward x=f32/100x16x8 w=[f32/256x8,f32/256x64] r=[f32/256x64,f32/256x64] bw=[f32/256,f32/256] br=[f32/256,f32/256] layers=2 ; name=series.h64.lstm.f32
rnn_backward dy=f32/100x16x64 x=f32/100x16x8 y=f32/100x16x64 w=[f32/256x8,f32/256x64] r=[f32/256x64,f32/256x64] gates=f32/2x100x16x256 cells=f32/2x100x16x64 inner=f32/1x100x16x64 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=series.h64.lstm.f32.backward
rnn_forward x=f32/24x64x1 w=[f32/150x1] r=[f32/150x50] bw=[f32/150] br=[f32/150] cell=gru ; name=series.h50.gru.f32
rnn_backward dy=f32/24x64x50 x=f32/24x64x1 y=f32/24x64x50 w=[f32/150x1] r=[f32/150x50] gates=f32/1x24x64x200 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=series.h50.gru.f32.backward
rnn_forward x=f32/30x16x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=seq2seq.h256.gru.f32
rnn_backward dy=f32/30x16x256 x=f32/30x16x256 y=f32/30x16x256 w=[f32/768x256] r=[f32/768x256] gates=f32/1x30x16x1024 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=seq2seq.h256.gru.f32.backward
rnn_forward x=f32/4x8x656 w=[f32/1200x656,f32/1200x656,f32/1200x800,f32/1200x800] r=[f32/1200x400,f32/1200x400,f32/1200x400,f32/1200x400] bw=[f32/1200,f32/1200,f32/1200,f32/1200] br=[f32/1200,f32/1200,f32/1200,f32/1200] cell=gru layers=2 direction=both ; name=deepspeech2.h400.gru.f32
rnn_backward dy=f32/4x8x800 x=f32/4x8x656 y=f32/4x8x800 w=[f32/1200x656,f32/1200x656,f32/1200x800,f32/1200x800] r=[f32/1200x400,f32/1200x400,f32/1200x400,f32/1200x400] gates=f32/4x4x8x1600 inner=f32/1x4x8x800 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=2 direction=both ; name=deepspeech2.h400.gru.f32.backward
rnn_forward x=f32/30x8x512 w=[f32/1024x512,f32/1024x512] r=[f32/1024x256,f32/1024x256] bw=[f32/1024,f32/1024] br=[f32/1024,f32/1024] direction=both ; name=las.h256.lstm.f32
rnn_backward dy=f32/30x8x512 x=f32/30x8x512 y=f32/30x8x512 w=[f32/1024x512,f32/1024x512] r=[f32/1024x256,f32/1024x256] gates=f32/2x30x8x1024 cells=f32/2x30x8x256 dx=? dw=? dr=? dbw=? dbr=? direction=both ; name=las.h256.lstm.f32.backward
rnn_forward x=f32/60x16x32 w=[f32/32x32] r=[f32/32x32] bw=[f32/32] br=[f32/32] cell=tanh ; name=series.h32.tanh.f32
rnn_backward dy=f32/60x16x32 x=f32/60x16x32 y=f32/60x16x32 w=[f32/32x32] r=[f32/32x32] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=series.h32.tanh.f32.backward
rnn_forward x=f32/35x20x256 w=[f32/256x256] r=[f32/256x256] bw=[f32/256] br=[f32/256] cell=tanh ; name=words.h256.tanh.f32
rnn_backward dy=f32/35x20x256 x=f32/35x20x256 y=f32/35x20x256 w=[f32/256x256] r=[f32/256x256] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=words.h256.tanh.f32.backward
rnn_forward x=bf16/20x8x128 w=[bf16/384x128] r=[bf16/384x128] bw=[bf16/384] br=[bf16/384] cell=gru ; name=h128.b8.gru.bf16
rnn_backward dy=bf16/20x8x128 x=bf16/20x8x128 y=bf16/20x8x128 w=[bf16/384x128] r=[bf16/384x128] gates=bf16/1x20x8x512 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h128.b8.gru.bf16.backward

# one sequence, one step, many sequences
rnn_forward x=f32/50x1x32 w=[f32/128x32] r=[f32/128x32] bw=[f32/128] br=[f32/128] ; name=h32.b1.t50.lstm.f32
rnn_forward x=f32/50x1x64 w=[f32/256x64] r=[f32/256x64] bw=[f32/256] br=[f32/256] ; name=h64.b1.t50.lstm.f32
rnn_backward dy=f32/50x1x64 x=f32/50x1x64 y=f32/50x1x64 w=[f32/256x64] r=[f32/256x64] gates=f32/1x50x1x256 cells=f32/1x50x1x64 dx=? dw=? dr=? dbw=? dbr=? ; name=h64.b1.t50.lstm.f32.backward
rnn_forward x=f32/50x1x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=h256.b1.t50.lstm.f32
rnn_backward dy=f32/50x1x256 x=f32/50x1x256 y=f32/50x1x256 w=[f32/1024x256] r=[f32/1024x256] gates=f32/1x50x1x1024 cells=f32/1x50x1x256 dx=? dw=? dr=? dbw=? dbr=? ; name=h256.b1.t50.lstm.f32.backward
rnn_forward x=f32/50x1x512 w=[f32/2048x512] r=[f32/2048x512] bw=[f32/2048] br=[f32/2048] ; name=h512.b1.t50.lstm.f32
rnn_forward x=f32/8x1x1024 w=[f32/4096x1024] r=[f32/4096x1024] bw=[f32/4096] br=[f32/4096] ; name=h1024.b1.t8.lstm.f32
rnn_forward x=f32/1x1x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=silero.h128.t1.lstm.f32
rnn_forward x=f32/7x1x64 w=[f32/256x64,f32/256x64] r=[f32/256x64,f32/256x64] bw=[f32/256,f32/256] br=[f32/256,f32/256] layers=2 ; name=silero.h64.t7.lstm.f32
rnn_forward x=f32/1x1x512 w=[f32/1152x512] r=[f32/1152x384] bw=[f32/1152] br=[f32/1152] cell=gru ; name=lpcnet.h384.t1.gru.f32
rnn_forward x=bf16/1x1x1024 w=[bf16/4096x1024] r=[bf16/4096x1024] bw=[bf16/4096] br=[bf16/4096] ; name=h1024.b1.t1.lstm.bf16
rnn_forward x=bf16/20x1x512 w=[bf16/2048x512] r=[bf16/2048x512] bw=[bf16/2048] br=[bf16/2048] ; name=h512.b1.t20.lstm.bf16
rnn_forward x=bf16/1x4x512 w=[bf16/1536x512] r=[bf16/1536x512] bw=[bf16/1536] br=[bf16/1536] cell=gru ; name=h512.b4.t1.gru.bf16
rnn_forward x=f16/1x1x896 w=[f16/2688x896] r=[f16/2688x896] bw=[f16/2688] br=[f16/2688] cell=gru ; name=h896.b1.t1.gru.f16
rnn_forward x=bf16/1x1x512 w=[bf16/512x512] r=[bf16/512x512] bw=[bf16/512] br=[bf16/512] cell=tanh ; name=h512.b1.t1.tanh.bf16
rnn_forward x=f32/1x16x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=h256.b16.t1.lstm.f32
rnn_forward x=f32/4x8x1024 w=[f32/4096x1024] r=[f32/4096x1024] bw=[f32/4096] br=[f32/4096] ; name=h1024.b8.t4.lstm.f32
rnn_forward x=f32/40x64x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=h128.b64.t40.lstm.f32
rnn_backward dy=f32/40x64x128 x=f32/40x64x128 y=f32/40x64x128 w=[f32/512x128] r=[f32/512x128] gates=f32/1x40x64x512 cells=f32/1x40x64x128 dx=? dw=? dr=? dbw=? dbr=? ; name=h128.b64.t40.lstm.f32.backward
rnn_forward x=f32/1x64x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=h512.b64.t1.gru.f32
rnn_backward dy=f32/1x64x512 x=f32/1x64x512 y=f32/1x64x512 w=[f32/1536x512] r=[f32/1536x512] gates=f32/1x1x64x2048 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h512.b64.t1.gru.f32.backward
rnn_forward x=f32/2x64x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=h512.b64.t2.gru.f32
rnn_backward dy=f32/2x64x512 x=f32/2x64x512 y=f32/2x64x512 w=[f32/1536x512] r=[f32/1536x512] gates=f32/1x2x64x2048 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h512.b64.t2.gru.f32.backward
rnn_forward x=f32/128x2x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=h128.b2.t128.lstm.f32
rnn_backward dy=f32/128x2x128 x=f32/128x2x128 y=f32/128x2x128 w=[f32/512x128] r=[f32/512x128] gates=f32/1x128x2x512 cells=f32/1x128x2x128 dx=? dw=? dr=? dbw=? dbr=? ; name=h128.b2.t128.lstm.f32.backward
rnn_forward x=f32/32x4x128 w=[f32/1024x128] r=[f32/1024x256] ; name=h256.b4.t32.nobias.lstm.f32
rnn_backward dy=f32/32x4x256 x=f32/32x4x128 y=f32/32x4x256 w=[f32/1024x128] r=[f32/1024x256] gates=f32/1x32x4x1024 cells=f32/1x32x4x256 dx=? dw=? dr=? ; name=h256.b4.t32.nobias.lstm.f32.backward

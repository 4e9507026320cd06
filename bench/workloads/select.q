# Rows by index and their sums, encodings, rankings, scans, padding by elements of x.

gather x=bf16/50257x1024 indices=i32/65536 ; name=gather.embedding
gather x=f32/50257x768 indices=i64/8x1024 ; name=gather.gpt2
gather x=f32/1000000x16 indices=i32/1000000 ; name=gather.narrow
scatter_add dy=bf16/65536x1024 indices=i32/65536 dx=f32/50257x1024 ; name=scatter_add.embedding
scatter_add dy=f32/8x1024x768 indices=i64/8x1024 dx=f32/50257x768 ; name=scatter_add.gpt2
one_hot indices=i32/65536 depth=1000 ; name=one_hot
one_hot indices=i64/32x4096 depth=512 y=bf16/32x4096x512 ; name=one_hot.bf16
top_k x=f32/65536x64 k=8 indices=? ; name=top_k.experts
top_k x=bf16/512x50257 k=50 indices=? ; name=top_k.vocabulary
top_k x=f32/64x131072 k=1000 indices=? ; name=top_k.long
cumsum x=f32/8192x4096 ; name=cumsum.rows
cumsum x=f32/8x4194304 ; name=cumsum.long
cumsum x=bf16/64x4096x256 axis=1 ; name=cumsum.middle
pad x=f32/32x64x224x224 pad=0,0,3,3 mode=reflect ; name=pad.reflect
pad x=bf16/32x64x224x224 pad=0,0,1,1 mode=replicate ; name=pad.replicate
pad x=f32/32x64x224x224 pad=0,0,1,1 ; name=pad.constant
pad_backward dy=f32/32x64x230x230 pad=0,0,3,3 mode=reflect ; name=pad_backward.reflect
pad x=u8/32x64x224x224 pad=0,0,1,1 mode=replicate ; name=pad.replicate.u8
pad_backward dy=bf16/32x64x230x230 pad=0,0,3,3 mode=reflect ; name=pad_backward.reflect.bf16
scatter_add dy=bf16/65536x64 indices=i64/65536 dx=f32/1000x64 ; name=scatter_add.few_rows
scatter_add dy=bf16/65536x256 indices=i64/65536 dx=f32/32000x256 ; indices.fill=zero name=scatter_add.one_row
cumsum x=f32/32768x768 axis=0 ; name=cumsum.columns
cumsum x=i32/8192x64 axis=0 ; name=cumsum.experts
cumsum x=f32/65536x64 ; name=cumsum.short
sort x=f32/64x32768 indices=? ; name=sort.lines
sort x=f32/1000000 descending=1 indices=? ; name=sort.one
sort x=i64/65536 indices=i64/65536 ; name=sort.experts
scatter_elements x=f32/1000x64 indices=i64/65536x64 updates=f32/65536x64 axis=0 mode=add ; labels=0..999 name=scatter_elements.add
scatter_nd x=bf16/8192x1024 indices=i64/2048x1 updates=bf16/2048x1024 ; labels=0..8191 name=scatter_nd.rows

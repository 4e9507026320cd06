# Matrix products. Names: gemm.DTYPE.MxNxK, ta and tb for a transposed operand.

# squares
matmul a=f32/64x64 b=f32/64x64 ; name=gemm.f32.64x64x64
matmul a=f32/128x128 b=f32/128x128 ; name=gemm.f32.128x128x128
matmul a=f32/256x256 b=f32/256x256 ; name=gemm.f32.256x256x256
matmul a=f32/384x384 b=f32/384x384 ; name=gemm.f32.384x384x384
matmul a=f32/512x512 b=f32/512x512 ; name=gemm.f32.512x512x512
matmul a=f32/768x768 b=f32/768x768 ; name=gemm.f32.768x768x768
matmul a=f32/1024x1024 b=f32/1024x1024 ; name=gemm.f32.1024x1024x1024
matmul a=f32/1536x1536 b=f32/1536x1536 ; name=gemm.f32.1536x1536x1536
matmul a=f32/2048x2048 b=f32/2048x2048 ; name=gemm.f32.2048x2048x2048

# transposes
matmul a=f32/512x512/t b=f32/512x512 ; name=gemm.f32.512x512x512.ta
matmul a=f32/512x512 b=f32/512x512/t ; name=gemm.f32.512x512x512.tb
matmul a=f32/512x512/t b=f32/512x512/t ; name=gemm.f32.512x512x512.ta.tb

# odd sizes
matmul a=f32/1000x1000 b=f32/1000x1000 ; name=gemm.f32.1000x1000x1000
matmul a=f32/129x513 b=f32/513x257 ; name=gemm.f32.129x257x513
matmul a=f32/1x2048 b=f32/2048x1000 ; name=gemm.f32.1x1000x2048
matmul a=f32/7x91 b=f32/91x333 ; name=gemm.f32.7x333x91

# few rows: inference (DeepBench server, Llama-3-8B)
matmul a=f32/1x1760 b=f32/1760x1760 ; name=gemm.f32.1x1760x1760
matmul a=f32/4x1760 b=f32/1760x1760 ; name=gemm.f32.4x1760x1760
matmul a=f32/16x1760 b=f32/1760x1760 ; name=gemm.f32.16x1760x1760
matmul a=f32/64x1760 b=f32/1760x1760 ; name=gemm.f32.64x1760x1760
matmul a=f32/1x4096 b=f32/4096x4096 ; name=gemm.f32.1x4096x4096
matmul a=f32/30x4096 b=f32/4096x4096 ; name=gemm.f32.30x4096x4096

# training (DeepBench), BERT-large
matmul a=f32/1760x1760 b=f32/1760x128 ; name=gemm.f32.1760x128x1760
matmul a=f32/2048x2048 b=f32/2048x64 ; name=gemm.f32.2048x64x2048
matmul a=f32/35x1760 b=f32/1760x8457 ; name=gemm.f32.35x8457x1760
matmul a=f32/384x1024 b=f32/1024x1024 ; name=gemm.f32.384x1024x1024
matmul a=f32/384x1024 b=f32/1024x4096 ; name=gemm.f32.384x4096x1024
matmul a=f32/384x4096 b=f32/4096x1024 ; name=gemm.f32.384x1024x4096

# long sums
matmul a=f32/64x65536 b=f32/65536x64 ; name=gemm.f32.64x64x65536
matmul a=f32/128x16384/t b=f32/16384x128 ; name=gemm.f32.128x128x16384.ta

# inner products of a solver's last steps, each as long as the model (L-BFGS, Anderson acceleration)
matmul a=f32/10x1048576 b=f32/1048576x10/t ; name=gemm.f32.10x10x1048576.tb

# batched: attention of BERT-large, broadcast
matmul a=f32/16x384x64 b=f32/16x64x384/t ; name=gemm.f32.qk
matmul a=f32/16x384x384 b=f32/16x384x64 ; name=gemm.f32.wv
matmul a=f32/32x128x256 b=f32/1x256x128 ; name=gemm.f32.broadcast

# other dtypes
matmul a=f64/256x256 b=f64/256x256 ; name=gemm.f64.256x256x256
matmul a=f64/1024x1024 b=f64/1024x1024 ; name=gemm.f64.1024x1024x1024
matmul a=bf16/256x256 b=bf16/256x256 ; name=gemm.bf16.256x256x256
matmul a=bf16/1024x1024 b=bf16/1024x1024 ; name=gemm.bf16.1024x1024x1024
matmul a=f16/256x256 b=f16/256x256 ; name=gemm.f16.256x256x256
matmul a=f16/1024x1024 b=f16/1024x1024 ; name=gemm.f16.1024x1024x1024
matmul a=i8/512x512 b=i8/512x512 ; name=gemm.i8.512x512x512

# bias and activation: one engine or two
matmul a=f32/1024x512 b=f32/512x1024 bias=f32/1024 ; name=gemm.bias

in a f32/1024x512
in b f32/512x1024
in bias f32/1024
z = matmul a=a b=b bias=bias
out y = gelu x=z ; name=gemm.bias.gelu

# f64
matmul a=f64/4096x4096 b=f64/4096x4096 ; name=gemm.f64.4096x4096x4096
matmul a=f64/64x64x64 b=f64/64x64x64 ; name=gemm.f64.64x64x64x64
matmul a=f64/128x16384/t b=f64/16384x128 ; name=gemm.f64.128x128x16384.ta

# The anchor list's matrix products in the other dtypes, and small ones. For a GPU: --filter tf32 with math=tf32 (cuBLASLt:
# math=fast), --filter e4m3 with math=fast on both sides (raw sums) or strict on both (promoted ones).

# f32 as tf32
matmul a=f32/8192x8192 b=f32/8192x8192/t ; name=matmul.tf32.m8192.n8192.k8192
matmul a=f32/4096x4096 b=f32/4096x4096/t ; name=matmul.tf32.m4096.n4096.k4096
matmul a=f32/2048x2048 b=f32/2048x2048/t ; name=matmul.tf32.m2048.n2048.k2048
matmul a=f32/1024x1024 b=f32/1024x1024/t ; name=matmul.tf32.m1024.n1024.k1024
matmul a=f32/512x512 b=f32/512x512/t ; name=matmul.tf32.m512.n512.k512
matmul a=f32/4096x4096 b=f32/4096x14336/t ; name=matmul.tf32.m4096.n14336.k4096
matmul a=f32/4096x14336 b=f32/14336x4096/t ; name=matmul.tf32.m4096.n4096.k14336
matmul a=f32/128x8192 b=f32/8192x8192/t ; name=matmul.tf32.m128.n8192.k8192
matmul a=f32/64x8192 b=f32/8192x8192/t ; name=matmul.tf32.m64.n8192.k8192
matmul a=f32/16x8192 b=f32/8192x8192/t ; name=matmul.tf32.m16.n8192.k8192
matmul a=f32/1x8192 b=f32/8192x8192/t ; name=matmul.tf32.m1.n8192.k8192
matmul a=f32/1000x1000 b=f32/1000x1000/t ; name=matmul.tf32.m1000.n1000.k1000
matmul a=f32/129x513 b=f32/513x257/t ; name=matmul.tf32.m129.n257.k513

# 8 bits, y in bf16
matmul a=e4m3/8192x8192 b=e4m3/8192x8192/t y=bf16/8192x8192 ; name=matmul.e4m3.m8192.n8192.k8192
matmul a=e4m3/4096x4096 b=e4m3/4096x4096/t y=bf16/4096x4096 ; name=matmul.e4m3.m4096.n4096.k4096
matmul a=e4m3/2048x2048 b=e4m3/2048x2048/t y=bf16/2048x2048 ; name=matmul.e4m3.m2048.n2048.k2048
matmul a=e4m3/1024x1024 b=e4m3/1024x1024/t y=bf16/1024x1024 ; name=matmul.e4m3.m1024.n1024.k1024
matmul a=e4m3/512x512 b=e4m3/512x512/t y=bf16/512x512 ; name=matmul.e4m3.m512.n512.k512
matmul a=e4m3/4096x4096 b=e4m3/4096x14336/t y=bf16/4096x14336 ; name=matmul.e4m3.m4096.n14336.k4096
matmul a=e4m3/4096x14336 b=e4m3/14336x4096/t y=bf16/4096x4096 ; name=matmul.e4m3.m4096.n4096.k14336
matmul a=e4m3/128x8192 b=e4m3/8192x8192/t y=bf16/128x8192 ; name=matmul.e4m3.m128.n8192.k8192
matmul a=e4m3/64x8192 b=e4m3/8192x8192/t y=bf16/64x8192 ; name=matmul.e4m3.m64.n8192.k8192
matmul a=e4m3/16x8192 b=e4m3/8192x8192/t y=bf16/16x8192 ; name=matmul.e4m3.m16.n8192.k8192

# small: one row, squares below a tile, 1x1 convolutions and the classifier of ResNet-50 as products, a large K
matmul a=bf16/1x4096 b=bf16/4096x4096/t ; name=matmul.small.row.4096
matmul a=bf16/64x64 b=bf16/64x64 ; name=matmul.small.64
matmul a=bf16/256x256 b=bf16/256x256 ; name=matmul.small.256
matmul a=bf16/300x300 b=bf16/300x300 ; name=matmul.small.300
matmul a=bf16/12544x256 b=bf16/256x1024/t ; name=matmul.small.rn50.3d
matmul a=bf16/3136x512 b=bf16/512x2048/t ; name=matmul.small.rn50.4d
matmul a=bf16/128x2048 b=bf16/2048x1000 ; name=matmul.small.rn50.fc
matmul a=bf16/64x4096 b=bf16/4096x64 ; name=matmul.small.deep

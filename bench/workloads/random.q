# Random numbers and dropout, at sizes beyond any cache and at one that fits.

dropout x=bf16/16384x8192 seed=1 p=0.1 mask=? ; name=dropout.bf16.16384x8192.mask
dropout x=bf16/16384x8192 seed=1 p=0.1 ; name=dropout.bf16.16384x8192
dropout x=f32/8192x8192 seed=1 p=0.1 mask=? ; name=dropout.f32.8192x8192.mask
dropout x=bf16/512x1024 seed=1 p=0.1 mask=? ; name=dropout.bf16.512x1024.mask
dropout_backward dy=bf16/16384x8192 mask=u8/16777216 p=0.1 ; name=dropout.bwd.bf16.16384x8192.mask
dropout_backward dy=bf16/16384x8192 seed=1 p=0.1 ; name=dropout.bwd.bf16.16384x8192
rng_uniform seed=1 y=f32/8192x8192 ; name=uniform.f32.8192x8192
rng_uniform seed=1 y=f32/8192x8192 min=-0.1 max=0.1 ; name=uniform.f32.8192x8192.range
rng_uniform seed=1 y=bf16/16384x8192 ; name=uniform.bf16.16384x8192
rng_normal seed=1 y=f32/8192x8192 ; name=normal.f32.8192x8192
rng_bernoulli seed=1 y=bf16/16384x8192 ; name=bernoulli.bf16.16384x8192

# training steps: lists of tensors, dtypes, state in place and apart, scalars on the host and on the device, skipped steps.

# sgd
sgd params=[f32/7] grads=[f32/7] step=0 rate=0.1 ; as=f64
sgd params=[f32/7,f32/3x5,f32/1] grads=[f32/7,f32/3x5,f32/1] step=3 rate=0.5 decay=0.01 ; as=bf16,f16,f64
sgd params=[f32/2049,f32/64] grads=[f32/2049,f32/64] velocity=[f32/2049,f32/64] new_velocity=? momentum=0.9 step=i64 rate=f32
sgd params=[f32/33,f32/64] grads=[f32/33,f32/64] velocity=[f32/33,f32/64] new_velocity=velocity new_params=params momentum=0.9 nesterov=1 decay=0.1 step=7 rate=0.01 ; as=f64
sgd params=[bf16/33] grads=[f16/33] velocity=[f32/33] new_velocity=? momentum=0.5 step=1 rate=2 scale=f32
sgd params=[f32/40] grads=[bf16/40] step=i64 new_step=step rate=f32 scale=1024 copy=[bf16/40] new_params=params
sgd params=[f32/40,f32/9] grads=[f32/40,f32/9] step=5 rate=1 found=1 velocity=[f32/40,f32/9] new_velocity=? momentum=0.9 ; fill=special
sgd params=[f32/33] grads=[f32/33] step=i64 rate=1 found=f32 ; found.is=1
sgd params=[f32/33] grads=[f32/33] velocity=[f32/33] new_velocity=velocity new_params=params new_step=step momentum=0.9 step=i64 rate=f32 found=f32 ; found.is=0.5
sgd params=[f32/6x10/t,f32/0x3] grads=[f32/6x10/t,f32/0x3] step=5 rate=1
sgd params=[f32/6x10] grads=[f32/6x10/t] step=5 rate=1

# adam
adam params=[f32/7] grads=[f32/7] m=[f32/7] v=[f32/7] step=0 rate=0.1 ; as=f64
adam params=[f32/7,f32/3x5,f32/1] grads=[f32/7,f32/3x5,f32/1] m=[f32/7,f32/3x5,f32/1] v=[f32/7,f32/3x5,f32/1] step=10 rate=0.01 decay=0.01 ; as=bf16,f64
adam params=[f32/5000,f32/33] grads=[f32/5000,f32/33] m=[f32/5000,f32/33] v=[f32/5000,f32/33] step=i64 rate=f32 scale=f32 new_params=params new_m=m new_v=v new_step=step ; step.is=4 scale.is=8
adam params=[f32/100] grads=[bf16/100] m=[f32/100] v=[f32/100] step=999 rate=0.001 beta1=0.5 beta2=0.9 eps=0.01 copy=[bf16/100]
adam params=[f32/100] grads=[f16/100] m=[f32/100] v=[f32/100] step=2 rate=0.001 scale=65536 found=f32 copy=[f16/100] ; found.is=0
adam params=[f32/100,f32/7] grads=[f16/100,f16/7] m=[f32/100,f32/7] v=[f32/100,f32/7] step=i64 rate=0.001 found=f32 copy=[f16/100,bf16/7] ; found.is=1 grads0.fill=nan
adam params=[bf16/100] grads=[bf16/100] m=[f32/100] v=[f32/100] step=2 rate=0.1 new_params=params
adam params=[f32/4x6/t,f32/5@4] grads=[f32/4x6/t,f32/5@4] m=[f32/4x6/t,f32/5] v=[f32/4x6/t,f32/5] step=2 rate=0.1
adam params=[f32/4x6/12:2] grads=[f32/4x6] m=[f32/4x6] v=[f32/4x6] step=2 rate=0.1
adam params=[f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3] grads=[f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3] m=[f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3] v=[f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3,f32/3] step=0 rate=0.1 new_params=params new_m=m new_v=v
adamw params=[f32/7,f32/3x5] grads=[f32/7,f32/3x5] m=[f32/7,f32/3x5] v=[f32/7,f32/3x5] step=10 rate=0.01 decay=0.1 ; as=bf16,f64
adamw params=[f32/2500] grads=[f32/2500] m=[f32/2500] v=[f32/2500] step=i64 rate=f32 decay=0.1 new_params=params new_m=m new_v=v ; step.is=0
adamw params=[f32/50] grads=[f32/50] m=[f32/50] v=[f32/50] step=1 rate=0.01 found=2 decay=0.5

# the norm of a list
global_norm x=[f32/7] ; as=f64
global_norm x=[f32/2049,f32/3x5,f32/1] scale=4 limit=0.5 divisor=? ; as=bf16,f16,f64
global_norm x=[f32/300,bf16/40,f16/9] scale=f32 limit=1000 divisor=?
global_norm x=[f32/6x10/24:2,f32/8/0] divisor=?
global_norm x=[f32/0x3] divisor=? limit=1
global_norm x=[f32/8300,bf16/16390,f16/8192] divisor=? limit=1000

# loss scales
amp_unscale grads=[f32/7,f32/3x5] scale=8 new_grads=? ; as=f16,bf16,f64
amp_unscale grads=[f32/2049,f16/40] scale=f32 new_grads=grads ; fill=signed,special
amp_unscale grads=[f32/2049,bf16/40] scale=f32 ; fill=signed,special
amp_unscale grads=[f32/100,f32/6x4/t] scale=3 new_grads=? ; fill=signed grads1.fill=inf
amp_unscale grads=[f16/100,f32/6x4/12:2] scale=3 ; fill=signed
amp_unscale grads=[f32/8300,bf16/8192,f16/8200] scale=3 new_grads=?
amp_update scale=f32 good=i64 found=f32 ; scale.is=1024 good.is=5 found.is=0
amp_update scale=f32 good=i64 found=f32 new_scale=scale new_good=good interval=6 ; scale.is=1024 good.is=5 found.is=0
amp_update scale=f32 good=i64 found=f32 new_scale=scale new_good=good ; scale.is=1024 good.is=5 found.is=1
amp_update scale=f64 good=i64 found=f64 backoff=0.25 ; scale.is=3 good.is=4 found.is=1
amp_update scale=f64 good=i64 found=f32 growth=1.5 backoff=0.25 interval=1 ; scale.is=3 good.is=0 found.is=0

# counters at the largest integer
amp_update scale=f32 good=i64 found=f32 ; scale.is=1024 good.is=9223372036854775807 found.is=0 new_scale.is=2048 new_good.is=0
sgd params=[f32/5] grads=[f32/5] step=i64 rate=0.5 ; step.is=9223372036854775807 new_step.is=9223372036854775807
adam params=[f64/5] grads=[f64/5] m=[f64/5] v=[f64/5] step=i64 rate=0.5 ; step.is=9223372036854775807 new_step.is=9223372036854775807
adam params=[f32/5] grads=[f32/5] m=[f32/5] v=[f32/5] step=i64 rate=0.5 found=f32 ; step.is=9223372036854775807 found.is=1 new_step.is=9223372036854775807

# a graph: gradients unscaled and checked, and a step that obeys `found`
in p f32/10
in q f32/3x2
in g f16/10
in h f16/3x2
in s f32
in t i64
f = amp_unscale grads=[g,h] scale=s
n = sgd params=[p,q] grads=[g,h] step=t rate=0.1 scale=s found=f new_params=[a,b] copy=[c:f16/10,d:f16/3x2]
out a over p
out b over q
out c
out d
out n

# subnormal moments
adam params=[f32/70] grads=[f32/70] m=[f32/70] v=[f32/70] step=0 rate=0.1 ; fill=pos,tiny v0.fill=zero plain=1

# in f64 the loss of digits in 1 - b^t shows
adamw params=[f64/4@8] grads=[f64/4] m=[f64/4] v=[f64/4] step=3 rate=0.25 scale=4 ; fill=pos seed=2770

# a scale that would grow beyond its own dtype stays
amp_update scale=f32 good=i64 found=f32 interval=1 ; fill=zero scale.is=3e38 good.is=0 found.is=0 new_scale.is=3e38 new_good.is=0 plain=1
amp_update scale=f64 good=i64 found=f64 interval=1 ; fill=zero scale.is=3e38 good.is=0 found.is=0 new_scale.is=6e38 new_good.is=0 plain=1
# a scale that falls stops; one of 0 is found
amp_update scale=f32 good=i64 found=f32 ; scale.is=2e-38 good.is=5 found.is=1 plain=1
amp_update scale=f32 good=i64 found=f32 ; scale.is=0 good.is=5 found.is=nan plain=1
amp_unscale grads=[f32/7] scale=f32 ; scale.is=0 plain=1

# the other rules: state in place and apart, found, decay, scales that go uphill, dampening
rmsprop params=[f32/7] grads=[f32/7] v=[f32/7] step=0 rate=0.1 ; as=f64
rmsprop params=[f32/7,f32/3x5,f32/1] grads=[f32/7,f32/3x5,f32/1] v=[f32/7,f32/3x5,f32/1] step=10 rate=0.01 decay=0.01 ; as=bf16,f64
rmsprop params=[f32/300] grads=[f32/300] v=[f32/300] step=i64 rate=f32 scale=f32 new_params=params new_step=step new_v=v ; step.is=4 scale.is=-8
rmsprop params=[f32/100,f32/7] grads=[f16/100,f16/7] v=[f32/100,f32/7] step=i64 rate=0.001 found=f32 copy=[f16/100,bf16/7] ; found.is=1 grads0.fill=nan
rmsprop params=[bf16/100] grads=[bf16/100] v=[f32/100] step=2 rate=0.1 new_params=params
rmsprop params=[f32/4x6/t] grads=[f32/4x6] v=[f32/4x6] step=2 rate=0.1
adagrad params=[f32/7] grads=[f32/7] v=[f32/7] step=0 rate=0.1 ; as=f64
adagrad params=[f32/7,f32/3x5,f32/1] grads=[f32/7,f32/3x5,f32/1] v=[f32/7,f32/3x5,f32/1] step=10 rate=0.01 decay=0.01 ; as=bf16,f64
adagrad params=[f32/300] grads=[f32/300] v=[f32/300] step=i64 rate=f32 scale=f32 new_params=params new_step=step new_v=v ; step.is=4 scale.is=-8
adagrad params=[f32/100,f32/7] grads=[f16/100,f16/7] v=[f32/100,f32/7] step=i64 rate=0.001 found=f32 copy=[f16/100,bf16/7] ; found.is=1 grads0.fill=nan
adagrad params=[bf16/100] grads=[bf16/100] v=[f32/100] step=2 rate=0.1 new_params=params
adagrad params=[f32/4x6/t] grads=[f32/4x6] v=[f32/4x6] step=2 rate=0.1
lion params=[f32/7] grads=[f32/7] m=[f32/7] step=0 rate=0.1 ; as=f64
lion params=[f32/7,f32/3x5,f32/1] grads=[f32/7,f32/3x5,f32/1] m=[f32/7,f32/3x5,f32/1] step=10 rate=0.01 decay=0.01 ; as=bf16,f64
lion params=[f32/300] grads=[f32/300] m=[f32/300] step=i64 rate=f32 scale=f32 new_params=params new_step=step new_m=m ; step.is=4 scale.is=-8
lion params=[f32/100,f32/7] grads=[f16/100,f16/7] m=[f32/100,f32/7] step=i64 rate=0.001 found=f32 copy=[f16/100,bf16/7] ; found.is=1 grads0.fill=nan
lion params=[bf16/100] grads=[bf16/100] m=[f32/100] step=2 rate=0.1 new_params=params
lion params=[f32/4x6/t] grads=[f32/4x6] m=[f32/4x6] step=2 rate=0.1
amsgrad params=[f32/7] grads=[f32/7] m=[f32/7] v=[f32/7] peak=[f32/7] step=0 rate=0.1 ; as=f64
amsgrad params=[f32/7,f32/3x5,f32/1] grads=[f32/7,f32/3x5,f32/1] m=[f32/7,f32/3x5,f32/1] v=[f32/7,f32/3x5,f32/1] peak=[f32/7,f32/3x5,f32/1] step=10 rate=0.01 decay=0.01 ; as=bf16,f64
amsgrad params=[f32/300] grads=[f32/300] m=[f32/300] v=[f32/300] peak=[f32/300] step=i64 rate=f32 scale=f32 new_params=params new_step=step new_m=m new_v=v new_peak=peak ; step.is=4 scale.is=-8
amsgrad params=[f32/100,f32/7] grads=[f16/100,f16/7] m=[f32/100,f32/7] v=[f32/100,f32/7] peak=[f32/100,f32/7] step=i64 rate=0.001 found=f32 copy=[f16/100,bf16/7] ; found.is=1 grads0.fill=nan
amsgrad params=[bf16/100] grads=[bf16/100] m=[f32/100] v=[f32/100] peak=[f32/100] step=2 rate=0.1 new_params=params
amsgrad params=[f32/4x6/t] grads=[f32/4x6] m=[f32/4x6] v=[f32/4x6] peak=[f32/4x6] step=2 rate=0.1
rmsprop params=[f32/50,f32/9] grads=[f32/50,f32/9] v=[f32/50,f32/9] velocity=[f32/50,f32/9] new_velocity=velocity momentum=0.9 alpha=0.9 eps=0.01 step=2 rate=0.1 ; as=f64
adagrad params=[f32/50] grads=[f32/50] v=[f32/50] slowing=0.1 eps=0.01 step=7 rate=0.1 ; as=f64
lion params=[f32/50] grads=[f32/50] m=[f32/50] beta1=0.5 beta2=0.25 decay=0.1 step=7 rate=0.125 ; fill=int,signed,special as=f64
amsgrad params=[f32/50] grads=[f32/50] m=[f32/50] v=[f32/50] peak=[f32/50] step=7 rate=0.1 ; peak0.fill=zero as=f64
sgd params=[f32/33,f32/64] grads=[f32/33,f32/64] velocity=[f32/33,f32/64] new_velocity=? momentum=0.9 dampening=0.25 step=7 rate=0.01 ; as=f64
sgd params=[f32/33] grads=[f32/33] velocity=[f32/33] new_velocity=? momentum=0.9 dampening=0.25 nesterov=1 step=0 rate=0.01 scale=-2
# golden, from PyTorch, in f64
rmsprop params=[f64/3] grads=[f64/3] v=[f64/3] velocity=[f64/3] new_velocity=? alpha=0.9 eps=0.001 decay=0.05 momentum=0.8 step=3 rate=0.1 ; fill=zero params0.is=1.0,-2.0,0.5 grads0.is=0.3,-0.7,2.0 v0.is=0.1,0.2,0.3 velocity0.is=0.5,-0.25,0.125 new_params0.is=0.8508860343991272,-1.8183719404065954,0.24474137024379114 new_params0.within=1e-14 new_v0.is=0.10225000000000001,0.244,0.6800624999999999 new_v0.within=1e-14 new_velocity0.is=1.4911396560087273,-1.8162805959340447,2.5525862975620885 new_velocity0.within=1e-14 plain=1
adagrad params=[f64/3] grads=[f64/3] v=[f64/3] slowing=0.2 eps=0.001 decay=0.05 step=3 rate=0.1 ; fill=zero params0.is=1.0,-2.0,0.5 grads0.is=0.3,-0.7,2.0 v0.is=0.1,0.2,0.3 new_params0.is=0.9537231993708425,-1.9455049863755094,0.43969672673268706 new_params0.within=1e-14 new_v0.is=0.2225,0.8399999999999999,4.400625 new_v0.within=1e-14 plain=1
amsgrad params=[f64/3] grads=[f64/3] m=[f64/3] v=[f64/3] peak=[f64/3] beta1=0.8 beta2=0.9 eps=0.001 decay=0.05 step=3 rate=0.1 ; fill=zero params0.is=1.0,-2.0,0.5 grads0.is=0.3,-0.7,2.0 m0.is=0.5,-0.25,0.125 v0.is=0.1,0.2,0.3 peak0.is=0.5,0.1,0.2 new_params0.is=0.9340336328477825,-1.9276960470606144,0.4392175812073467 new_params0.within=1e-14 new_m0.is=0.47000000000000003,-0.36,0.5049999999999999 new_m0.within=1e-14 new_v0.is=0.10225000000000001,0.244,0.6800624999999999 new_v0.within=1e-14 new_peak0.is=0.5,0.244,0.6800624999999999 new_peak0.within=1e-14 plain=1
sgd params=[f64/3] grads=[f64/3] velocity=[f64/3] new_velocity=? momentum=0.8 dampening=0.3 decay=0.05 step=3 rate=0.1 scale=-1 ; fill=zero params0.is=1.0,-2.0,0.5 grads0.is=0.3,-0.7,2.0 velocity0.is=0.5,-0.25,0.125 new_params0.is=0.9775,-2.022,0.62825 new_params0.within=1e-14 new_velocity0.is=0.22500000000000003,0.21999999999999995,-1.2825 new_velocity0.within=1e-14 plain=1
lion params=[f64/3] grads=[f64/3] m=[f64/3] decay=0.05 step=3 rate=0.1 ; fill=zero params0.is=1.0,-2.0,0.5 grads0.is=0.3,-0.7,2.0 m0.is=0.5,-0.25,0.125 new_params0.is=0.895,-1.89,0.3975 new_params0.within=1e-14 new_m0.is=0.498,-0.2545,0.14375 new_m0.within=1e-14 plain=1
# lamb: a norm for each tensor, a limit, one that is 0, state in place and apart, found
lamb params=[f32/7] grads=[f32/7] m=[f32/7] v=[f32/7] step=0 rate=0.1 ; as=f64
lamb params=[f32/7,f32/3x5,f32/1] grads=[f32/7,f32/3x5,f32/1] m=[f32/7,f32/3x5,f32/1] v=[f32/7,f32/3x5,f32/1] step=10 rate=0.01 decay=0.01 ; as=bf16,f64
lamb params=[f32/300] grads=[f32/300] m=[f32/300] v=[f32/300] step=i64 rate=f32 scale=f32 new_params=params new_step=step new_m=m new_v=v ; step.is=4 scale.is=-8
lamb params=[f32/100,f32/7] grads=[f16/100,f16/7] m=[f32/100,f32/7] v=[f32/100,f32/7] step=i64 rate=0.001 found=f32 copy=[f16/100,bf16/7] ; found.is=1 grads0.fill=nan
lamb params=[bf16/100,bf16/9] grads=[bf16/100,bf16/9] m=[f32/100,f32/9] v=[f32/100,f32/9] step=2 rate=0.1 limit=0.5 new_params=params
lamb params=[f32/4x6/t] grads=[f32/4x6] m=[f32/4x6] v=[f32/4x6] limit=2 step=2 rate=0.1 ; as=f64
lamb params=[f32/50,f32/0x3] grads=[f32/50,f32/0x3] m=[f32/50,f32/0x3] v=[f32/50,f32/0x3] step=7 rate=0.1 ; params0.fill=zero as=f64
# golden: the formula in numpy, in f64
lamb params=[f64/3,f64/2] grads=[f64/3,f64/2] m=[f64/3,f64/2] v=[f64/3,f64/2] beta1=0.8 beta2=0.9 eps=0.001 decay=0.05 step=3 rate=0.1 ; fill=zero params0.is=1.0,-2.0,0.5 grads0.is=0.3,-0.7,2.0 m0.is=0.5,-0.25,0.125 v0.is=0.1,0.2,0.3 new_params0.is=0.8107203106332826,-1.898400657893887,0.42030826343438105 new_params0.within=1e-14 new_m0.is=0.46,-0.33999999999999997,0.4999999999999999 new_m0.within=1e-14 new_v0.is=0.099,0.229,0.6699999999999999 new_v0.within=1e-14 params1.is=0.25,4.0 grads1.is=-1.0,0.125 m1.is=0.1,-0.2 v1.is=0.05,0.4 new_params1.is=0.6496296711756381,4.030350056277567 new_params1.within=1e-14 new_m1.is=-0.11999999999999994,-0.13500000000000004 new_m1.within=1e-14 new_v1.is=0.145,0.36156250000000006 new_v1.within=1e-14 plain=1
lamb params=[f64/3,f64/2] grads=[f64/3,f64/2] m=[f64/3,f64/2] v=[f64/3,f64/2] beta1=0.8 beta2=0.9 eps=0.001 decay=0.05 limit=0.75 step=3 rate=0.1 ; fill=zero params0.is=1.0,-2.0,0.5 grads0.is=0.3,-0.7,2.0 m0.is=0.5,-0.25,0.125 v0.is=0.1,0.2,0.3 new_params0.is=0.8875417376732869,-1.9396359667272374,0.4526521083907508 new_params0.within=1e-14 new_m0.is=0.46,-0.33999999999999997,0.4999999999999999 new_m0.within=1e-14 new_v0.is=0.099,0.229,0.6699999999999999 new_v0.within=1e-14 params1.is=0.25,4.0 grads1.is=-1.0,0.125 m1.is=0.1,-0.2 v1.is=0.05,0.4 new_params1.is=0.2725026254084156,4.001708972072892 new_params1.within=1e-14 new_m1.is=-0.11999999999999994,-0.13500000000000004 new_m1.within=1e-14 new_v1.is=0.145,0.36156250000000006 new_v1.within=1e-14 plain=1
# large values: what is representable comes out
global_norm x=[f32/100] ; fill=large:30 plain=1

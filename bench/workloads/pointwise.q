# Pointwise functions, 16 million elements unless the name says otherwise.

relu x=f32/4096x4096 ; name=relu.16M
sigmoid x=f32/4096x4096 ; name=sigmoid.16M
tanh x=f32/4096x4096 ; name=tanh.16M
gelu x=f32/4096x4096 ; name=gelu.16M
gelu_tanh x=f32/4096x4096 ; name=gelu_tanh.16M
silu x=f32/4096x4096 ; name=silu.16M
exp x=f32/4096x4096 ; name=exp.16M
log x=f32/4096x4096 ; name=log.16M
sqrt x=f32/4096x4096 ; name=sqrt.16M
rsqrt x=f32/4096x4096 ; name=rsqrt.16M
erf x=f32/4096x4096 ; name=erf.16M
abs x=f32/4096x4096 ; name=abs.16M
hardswish x=f32/4096x4096 ; name=hardswish.16M
softplus x=f32/4096x4096 ; name=softplus.16M
mish x=f32/4096x4096 ; name=mish.16M
elu x=f32/4096x4096 ; name=elu.16M
leaky_relu x=f32/4096x4096 ; name=leaky_relu.16M
add a=f32/4096x4096 b=f32/4096x4096 ; name=add.16M
mul a=f32/4096x4096 b=f32/4096x4096 ; name=mul.16M
div a=f32/4096x4096 b=f32/4096x4096 ; name=div.16M
max a=f32/4096x4096 b=f32/4096x4096 ; name=max.16M
pow a=f32/4096x4096 b=f32/4096x4096 ; name=pow.16M
clip x=f32/4096x4096 min=-1 max=1 ; name=clip.16M
select c=bool/4096x4096 a=f32/4096x4096 b=f32/4096x4096 ; name=select.16M
lt a=f32/4096x4096 b=f32/4096x4096 ; name=lt.16M
cast x=f32/4096x4096 y=bf16/4096x4096 ; name=cast.f32-bf16
cast x=bf16/4096x4096 y=f32/4096x4096 ; name=cast.bf16-f32
cast x=f32/4096x4096 y=i8/4096x4096 ; name=cast.f32-i8

# broadcasts
add a=f32/32x256x28x28 b=f32/1x256x1x1 ; name=add.channel
add a=f32/32x256x28x28/nhwc b=f32/1x256x1x1/nhwc ; name=add.channel.nhwc
add a=f32/4096x4096 b=f32/1x4096 ; name=add.row
mul a=f32/4096x4096 b=f32/4096x1 ; name=mul.column
mul a=f32/4096x4096 b=0.5 ; name=mul.scalar

# small: the cost of a call
relu x=f32/64x64 ; name=relu.4K
add a=f32/256x256 b=f32/256x256 ; name=add.64K
gelu x=f32/256x1024 ; name=gelu.256K

# gradients
relu_backward dy=f32/4096x4096 x=f32/4096x4096 ; name=relu_backward.16M
gelu_backward dy=f32/4096x4096 x=f32/4096x4096 ; name=gelu_backward.16M
silu_backward dy=f32/4096x4096 x=f32/4096x4096 ; name=silu_backward.16M
sigmoid_backward dy=f32/4096x4096 x=f32/4096x4096 ; name=sigmoid_backward.16M
tanh_backward dy=f32/4096x4096 x=f32/4096x4096 ; name=tanh_backward.16M

# 16 bits
relu x=bf16/4096x4096 ; name=relu.bf16.16M
gelu x=bf16/4096x4096 ; name=gelu.bf16.16M
add a=f16/4096x4096 b=f16/4096x4096 ; name=add.f16.16M

# several in one pass: Adam; a residual block's end

in p f32/4194304
in g f32/4194304
in m f32/4194304
in v f32/4194304
in rate f32
m_kept = mul a=m b=0.9
m_new = mul a=g b=0.1
out m2 over m = add a=m_kept b=m_new
square = mul a=g b=g
v_kept = mul a=v b=0.999
v_new = mul a=square b=0.001
out v2 over v = add a=v_kept b=v_new
root = sqrt x=v2
scale = add a=root b=1e-08
way = div a=m2 b=scale
step = mul a=way b=rate
out p2 over p = sub a=p b=step ; name=adam.4M

in x f32/32x256x28x28
in shortcut f32/32x256x28x28
in scale f32/1x256x1x1
in shift f32/1x256x1x1
y0 = mul a=x b=scale
y1 = add a=y0 b=shift
y2 = add a=y1 b=shortcut
out y = relu x=y2 ; name=residual.end


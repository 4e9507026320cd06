# Convolutions with filters of one tap over planes, and images of one pixel (squeeze and excitation), as networks of the field run them:
# the forward rows where cuDNN led the most, and their gradients. Named dtype.channels.height.filters. For a GPU.

conv_forward x=f16/8x16x112x112 w=f16/96x16x1x1 ; name=f16.16.112.96.fwd
conv_forward x=f16/8x24x56x56 w=f16/72x24x1x1 ; name=f16.24.56.72.fwd
conv_forward x=f32/8x96x56x56 w=f32/96x96x1x1 ; name=f32.96.56.96.fwd
conv_forward x=f32/8x96x28x28 w=f32/192x96x1x1 ; name=f32.96.28.192.fwd
conv_forward x=f16/8x80x14x14 w=f16/480x80x1x1 ; name=f16.80.14.480.fwd
conv_forward x=f16/8x128x14x14 w=f16/512x128x1x1 ; name=f16.128.14.512.fwd
conv_forward x=bf16/8x32x112x112 w=bf16/16x32x1x1 ; name=bf16.32.112.16.fwd
conv_forward x=f32/8x72x28x28 w=f32/40x72x1x1 ; name=f32.72.28.40.fwd
conv_forward x=f32/8x112x14x14 w=f32/672x112x1x1 ; name=f32.112.14.672.fwd
conv_forward x=f32/8x64x56x56 w=f32/64x64x1x1 ; name=f32.64.56.64.fwd
conv_forward x=f16/8x256x14x14 w=f16/1024x256x1x1 ; name=f16.256.14.1024.fwd
conv_forward x=f32/8x24x56x56 w=f32/144x24x1x1 ; name=f32.24.56.144.fwd
conv_forward x=f32/8x256x56x56 w=f32/256x256x1x1 ; name=f32.256.56.256.fwd
conv_forward x=f16/8x40x28x28 w=f16/120x40x1x1 ; name=f16.40.28.120.fwd
conv_forward x=f32/8x160x7x7 w=f32/960x160x1x1 ; name=f32.160.7.960.fwd
conv_forward x=bf16/8x128x56x56 w=bf16/256x128x1x1 ; name=bf16.128.56.256.fwd
conv_forward x=f16/8x96x56x56 w=f16/24x96x1x1 ; name=f16.96.56.24.fwd
conv_forward x=bf16/8x64x56x56 w=bf16/128x64x1x1 ; name=bf16.64.56.128.fwd
conv_forward x=f32/8x192x14x14 w=f32/384x192x1x1 ; name=f32.192.14.384.fwd
conv_forward x=f16/8x256x56x56 w=f16/64x256x1x1 ; name=f16.256.56.64.fwd
conv_forward x=f16/8x512x28x28 w=f16/512x512x1x1 ; name=f16.512.28.512.fwd
conv_forward x=f16/8x480x14x14 w=f16/80x480x1x1 ; name=f16.480.14.80.fwd
conv_forward x=f32/8x512x14x14 w=f32/1024x512x1x1 ; name=f32.512.14.1024.fwd
conv_forward x=bf16/8x512x7x7 w=bf16/2048x512x1x1 ; name=bf16.512.7.2048.fwd
conv_forward x=bf16/8x28x1x1 w=bf16/672x28x1x1 bias=bf16/672 ; name=bf16.28.1.672.fwd
conv_forward x=f16/8x68x1x1 w=f16/1632x68x1x1 bias=f16/1632 ; name=f16.68.1.1632.fwd
conv_forward x=bf16/8x6x1x1 w=bf16/144x6x1x1 bias=bf16/144 ; name=bf16.6.1.144.fwd
conv_forward x=f16/8x960x1x1 w=f16/1280x960x1x1 bias=f16/1280 ; name=f16.960.1.1280.fwd
conv_forward x=bf16/8x672x1x1 w=bf16/168x672x1x1 bias=bf16/168 ; name=bf16.672.1.168.fwd
conv_backward_data dy=f16/8x96x112x112 w=f16/96x16x1x1 dx=f16/8x16x112x112 ; name=f16.16.112.96.data
conv_backward_filter x=f16/8x16x112x112 dy=f16/8x96x112x112 dw=f16/96x16x1x1 ; name=f16.16.112.96.filter
conv_backward_data dy=f16/8x72x56x56 w=f16/72x24x1x1 dx=f16/8x24x56x56 ; name=f16.24.56.72.data
conv_backward_filter x=f16/8x24x56x56 dy=f16/8x72x56x56 dw=f16/72x24x1x1 ; name=f16.24.56.72.filter
conv_backward_data dy=f32/8x96x56x56 w=f32/96x96x1x1 dx=f32/8x96x56x56 ; name=f32.96.56.96.data
conv_backward_filter x=f32/8x96x56x56 dy=f32/8x96x56x56 dw=f32/96x96x1x1 ; name=f32.96.56.96.filter
conv_backward_data dy=f32/8x192x28x28 w=f32/192x96x1x1 dx=f32/8x96x28x28 ; name=f32.96.28.192.data
conv_backward_filter x=f32/8x96x28x28 dy=f32/8x192x28x28 dw=f32/192x96x1x1 ; name=f32.96.28.192.filter
conv_backward_data dy=f16/8x512x14x14 w=f16/512x128x1x1 dx=f16/8x128x14x14 ; name=f16.128.14.512.data
conv_backward_filter x=f16/8x128x14x14 dy=f16/8x512x14x14 dw=f16/512x128x1x1 ; name=f16.128.14.512.filter
conv_backward_data dy=bf16/8x16x112x112 w=bf16/16x32x1x1 dx=bf16/8x32x112x112 ; name=bf16.32.112.16.data
conv_backward_filter x=bf16/8x32x112x112 dy=bf16/8x16x112x112 dw=bf16/16x32x1x1 ; name=bf16.32.112.16.filter
conv_backward_data dy=f32/8x40x28x28 w=f32/40x72x1x1 dx=f32/8x72x28x28 ; name=f32.72.28.40.data
conv_backward_filter x=f32/8x72x28x28 dy=f32/8x40x28x28 dw=f32/40x72x1x1 ; name=f32.72.28.40.filter
conv_backward_data dy=f32/8x672x14x14 w=f32/672x112x1x1 dx=f32/8x112x14x14 ; name=f32.112.14.672.data
conv_backward_filter x=f32/8x112x14x14 dy=f32/8x672x14x14 dw=f32/672x112x1x1 ; name=f32.112.14.672.filter
conv_backward_data dy=f32/8x64x56x56 w=f32/64x64x1x1 dx=f32/8x64x56x56 ; name=f32.64.56.64.data
conv_backward_filter x=f32/8x64x56x56 dy=f32/8x64x56x56 dw=f32/64x64x1x1 ; name=f32.64.56.64.filter
conv_backward_data dy=f16/8x1024x14x14 w=f16/1024x256x1x1 dx=f16/8x256x14x14 ; name=f16.256.14.1024.data
conv_backward_filter x=f16/8x256x14x14 dy=f16/8x1024x14x14 dw=f16/1024x256x1x1 ; name=f16.256.14.1024.filter
conv_backward_data dy=f32/8x960x7x7 w=f32/960x160x1x1 dx=f32/8x160x7x7 ; name=f32.160.7.960.data
conv_backward_filter x=f32/8x160x7x7 dy=f32/8x960x7x7 dw=f32/960x160x1x1 ; name=f32.160.7.960.filter
conv_backward_data dy=bf16/8x256x56x56 w=bf16/256x128x1x1 dx=bf16/8x128x56x56 ; name=bf16.128.56.256.data
conv_backward_filter x=bf16/8x128x56x56 dy=bf16/8x256x56x56 dw=bf16/256x128x1x1 ; name=bf16.128.56.256.filter
conv_backward_data dy=f16/8x64x56x56 w=f16/64x256x1x1 dx=f16/8x256x56x56 ; name=f16.256.56.64.data
conv_backward_filter x=f16/8x256x56x56 dy=f16/8x64x56x56 dw=f16/64x256x1x1 ; name=f16.256.56.64.filter
conv_backward_data dy=f16/8x80x14x14 w=f16/80x480x1x1 dx=f16/8x480x14x14 ; name=f16.480.14.80.data
conv_backward_filter x=f16/8x480x14x14 dy=f16/8x80x14x14 dw=f16/80x480x1x1 ; name=f16.480.14.80.filter
conv_backward_filter x=f16/32x512x28x28 dy=f16/32x128x28x28 dw=f16/128x512x1x1 ; name=rn50.3a.filter
conv_backward_data dy=f16/32x128x28x28 w=f16/128x512x1x1 dx=f16/32x512x28x28 ; name=rn50.3a.data

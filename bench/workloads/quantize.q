# Quantization as in training and inference: delayed and dynamic scales, MX blocks, tiles, channels; and dequantization.

quantize x=bf16/8192x16384 scale=f32 y=e4m3/8192x16384 ; name=quantize.bf16.e4m3.tensor
quantize x=bf16/8192x16384 scale=f32 y=e4m3/8192x16384 amax=? ; name=quantize.bf16.e4m3.tensor.amax
quantize x=f32/8192x8192 scale=f32 y=e5m2/8192x8192 amax=? ; name=quantize.f32.e5m2.tensor.amax
quantize x=f32/8192x8192 scale=f32 zero_point=u8 y=u8/8192x8192 ; name=quantize.f32.u8.tensor
quantize x=bf16/64x256x64x64 scale=f32/1x256x1x1 y=i8/64x256x64x64 ; name=quantize.bf16.i8.channel
quantize x=bf16/16384x8192 scale=f32/1x8192 y=i8/16384x8192 ; name=quantize.bf16.i8.column
quantize x=bf16/16384x8192 scale=f32/128x64 y=e4m3/16384x8192 ; name=quantize.bf16.e4m3.tile128
quantize x=bf16/512x1024 scale=f32 y=e4m3/512x1024 amax=? ; name=quantize.bf16.e4m3.small.amax
quantize_dynamic x=bf16/16384x8192 y=e4m3/16384x8192 scale=e8m0/16384x256 ; name=quantize.bf16.mxfp8
quantize_dynamic x=f32/8192x8192 y=e4m3/8192x8192 scale=e8m0/8192x256 ; name=quantize.f32.mxfp8
quantize_dynamic x=bf16/16384x8192 y=e4m3/16384x8192 block=1,128 ; name=quantize.bf16.e4m3.block128
quantize_dynamic x=bf16/16384x8192 y=i8/16384x8192 block=1,0 ; name=quantize.bf16.i8.row
quantize_dynamic x=f32/65536x1024 y=e4m3/65536x1024 block=1,0 ; name=quantize.f32.e4m3.row1024
quantize_dynamic x=bf16/4096x32768 y=e4m3/4096x32768 block=1,0 ; name=quantize.bf16.e4m3.row32768
quantize_dynamic x=bf16/16384x8192 y=e4m3/16384x8192 block=128,128 ; name=quantize.bf16.e4m3.tile128.dynamic
quantize_dynamic x=bf16/16384x8192 y=e4m3/16384x8192 scale=e8m0/512x8192 ; name=quantize.bf16.mxfp8.columns
quantize_dynamic x=bf16/8192x16384 y=e4m3/8192x16384 ; name=quantize.bf16.e4m3.dynamic
quantize_dynamic x=bf16/512x1024 y=e4m3/512x1024 scale=e8m0/512x32 ; name=quantize.bf16.mxfp8.small
quantize_dynamic x=bf16/512x1024 y=e4m3/512x1024 ; name=quantize.bf16.e4m3.dynamic.small
dequantize x=e4m3/16384x8192 scale=e8m0/16384x256 y=bf16/16384x8192 ; name=dequantize.mxfp8.bf16
dequantize x=i8/16384x16384 scale=f32/16384x1 zero_point=i8/16384x1 y=bf16/16384x16384 ; name=dequantize.i8.row.bf16
dequantize x=e4m3/8192x16384 scale=f32 y=f32/8192x16384 ; name=dequantize.e4m3.tensor.f32
dequantize x=i8/512x1024 scale=f32/512x1 y=bf16/512x1024 ; name=dequantize.i8.row.small

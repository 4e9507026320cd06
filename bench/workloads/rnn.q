# Recurrent networks: a grid of sizes for one step and for many, networks of speech, text and translation, gradients.

rnn_forward x=f32/1x1x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=rnn.f32.lstm.h256.b1.t1
rnn_forward x=f32/1x16x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=rnn.f32.lstm.h256.b16.t1
rnn_forward x=f32/1x64x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=rnn.f32.lstm.h256.b64.t1
rnn_forward x=f32/1x1x512 w=[f32/2048x512] r=[f32/2048x512] bw=[f32/2048] br=[f32/2048] ; name=rnn.f32.lstm.h512.b1.t1
rnn_forward x=f32/1x16x512 w=[f32/2048x512] r=[f32/2048x512] bw=[f32/2048] br=[f32/2048] ; name=rnn.f32.lstm.h512.b16.t1
rnn_forward x=f32/1x64x512 w=[f32/2048x512] r=[f32/2048x512] bw=[f32/2048] br=[f32/2048] ; name=rnn.f32.lstm.h512.b64.t1
rnn_forward x=f32/1x1x1024 w=[f32/4096x1024] r=[f32/4096x1024] bw=[f32/4096] br=[f32/4096] ; name=rnn.f32.lstm.h1024.b1.t1
rnn_forward x=f32/1x16x1024 w=[f32/4096x1024] r=[f32/4096x1024] bw=[f32/4096] br=[f32/4096] ; name=rnn.f32.lstm.h1024.b16.t1
rnn_forward x=f32/1x64x1024 w=[f32/4096x1024] r=[f32/4096x1024] bw=[f32/4096] br=[f32/4096] ; name=rnn.f32.lstm.h1024.b64.t1

rnn_forward x=f32/1x1x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=rnn.f32.gru.h256.b1.t1
rnn_forward x=f32/1x16x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=rnn.f32.gru.h256.b16.t1
rnn_forward x=f32/1x64x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=rnn.f32.gru.h256.b64.t1
rnn_forward x=f32/1x1x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=rnn.f32.gru.h512.b1.t1
rnn_forward x=f32/1x16x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=rnn.f32.gru.h512.b16.t1
rnn_forward x=f32/1x64x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=rnn.f32.gru.h512.b64.t1
rnn_forward x=f32/1x1x1024 w=[f32/3072x1024] r=[f32/3072x1024] bw=[f32/3072] br=[f32/3072] cell=gru ; name=rnn.f32.gru.h1024.b1.t1
rnn_forward x=f32/1x16x1024 w=[f32/3072x1024] r=[f32/3072x1024] bw=[f32/3072] br=[f32/3072] cell=gru ; name=rnn.f32.gru.h1024.b16.t1
rnn_forward x=f32/1x64x1024 w=[f32/3072x1024] r=[f32/3072x1024] bw=[f32/3072] br=[f32/3072] cell=gru ; name=rnn.f32.gru.h1024.b64.t1

rnn_forward x=f32/32x1x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=rnn.f32.lstm.h256.b1.t32
rnn_forward x=f32/32x16x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=rnn.f32.lstm.h256.b16.t32
rnn_forward x=f32/32x64x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=rnn.f32.lstm.h256.b64.t32
rnn_forward x=f32/32x1x512 w=[f32/2048x512] r=[f32/2048x512] bw=[f32/2048] br=[f32/2048] ; name=rnn.f32.lstm.h512.b1.t32
rnn_forward x=f32/32x16x512 w=[f32/2048x512] r=[f32/2048x512] bw=[f32/2048] br=[f32/2048] ; name=rnn.f32.lstm.h512.b16.t32
rnn_forward x=f32/32x64x512 w=[f32/2048x512] r=[f32/2048x512] bw=[f32/2048] br=[f32/2048] ; name=rnn.f32.lstm.h512.b64.t32
rnn_forward x=f32/32x1x1024 w=[f32/4096x1024] r=[f32/4096x1024] bw=[f32/4096] br=[f32/4096] ; name=rnn.f32.lstm.h1024.b1.t32
rnn_forward x=f32/32x16x1024 w=[f32/4096x1024] r=[f32/4096x1024] bw=[f32/4096] br=[f32/4096] ; name=rnn.f32.lstm.h1024.b16.t32
rnn_forward x=f32/32x64x1024 w=[f32/4096x1024] r=[f32/4096x1024] bw=[f32/4096] br=[f32/4096] ; name=rnn.f32.lstm.h1024.b64.t32

rnn_forward x=f32/32x1x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=rnn.f32.gru.h256.b1.t32
rnn_forward x=f32/32x16x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=rnn.f32.gru.h256.b16.t32
rnn_forward x=f32/32x64x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=rnn.f32.gru.h256.b64.t32
rnn_forward x=f32/32x1x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=rnn.f32.gru.h512.b1.t32
rnn_forward x=f32/32x16x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=rnn.f32.gru.h512.b16.t32
rnn_forward x=f32/32x64x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=rnn.f32.gru.h512.b64.t32
rnn_forward x=f32/32x1x1024 w=[f32/3072x1024] r=[f32/3072x1024] bw=[f32/3072] br=[f32/3072] cell=gru ; name=rnn.f32.gru.h1024.b1.t32
rnn_forward x=f32/32x16x1024 w=[f32/3072x1024] r=[f32/3072x1024] bw=[f32/3072] br=[f32/3072] cell=gru ; name=rnn.f32.gru.h1024.b16.t32
rnn_forward x=f32/32x64x1024 w=[f32/3072x1024] r=[f32/3072x1024] bw=[f32/3072] br=[f32/3072] cell=gru ; name=rnn.f32.gru.h1024.b64.t32

rnn_backward dy=f32/32x16x256 x=f32/32x16x256 y=f32/32x16x256 w=[f32/1024x256] r=[f32/1024x256] gates=f32/1x32x16x1024 cells=f32/1x32x16x256 dw=? dr=? dbw=? dbr=? ; name=rnn.backward.f32.lstm.h256.b16.t32
rnn_backward dy=f32/32x64x512 x=f32/32x64x512 y=f32/32x64x512 w=[f32/2048x512] r=[f32/2048x512] gates=f32/1x32x64x2048 cells=f32/1x32x64x512 dw=? dr=? dbw=? dbr=? ; name=rnn.backward.f32.lstm.h512.b64.t32
rnn_backward dy=f32/32x16x1024 x=f32/32x16x1024 y=f32/32x16x1024 w=[f32/4096x1024] r=[f32/4096x1024] gates=f32/1x32x16x4096 cells=f32/1x32x16x1024 dw=? dr=? dbw=? dbr=? ; name=rnn.backward.f32.lstm.h1024.b16.t32
rnn_backward dy=f32/32x16x256 x=f32/32x16x256 y=f32/32x16x256 w=[f32/768x256] r=[f32/768x256] gates=f32/1x32x16x1024 dw=? dr=? dbw=? dbr=? cell=gru ; name=rnn.backward.f32.gru.h256.b16.t32
rnn_backward dy=f32/32x64x512 x=f32/32x64x512 y=f32/32x64x512 w=[f32/1536x512] r=[f32/1536x512] gates=f32/1x32x64x2048 dw=? dr=? dbw=? dbr=? cell=gru ; name=rnn.backward.f32.gru.h512.b64.t32
rnn_backward dy=f32/32x16x1024 x=f32/32x16x1024 y=f32/32x16x1024 w=[f32/3072x1024] r=[f32/3072x1024] gates=f32/1x32x16x4096 dw=? dr=? dbw=? dbr=? cell=gru ; name=rnn.backward.f32.gru.h1024.b16.t32

# the networks of cuDNN's papers and benchmarks; one sequence as it is generated
rnn_forward x=f32/25x64x512 w=[f32/2048x512,f32/2048x512,f32/2048x512,f32/2048x512] r=[f32/2048x512,f32/2048x512,f32/2048x512,f32/2048x512] bw=[f32/2048,f32/2048,f32/2048,f32/2048] br=[f32/2048,f32/2048,f32/2048,f32/2048] layers=4 ; name=rnn.f32.lstm.l4.h512.b64.t25
rnn_forward x=f16/128x64x1024 w=[f16/4096x1024,f16/4096x1024,f16/4096x1024,f16/4096x1024] r=[f16/4096x1024,f16/4096x1024,f16/4096x1024,f16/4096x1024] bw=[f16/4096,f16/4096,f16/4096,f16/4096] br=[f16/4096,f16/4096,f16/4096,f16/4096] layers=4 ; name=rnn.f16.lstm.l4.h1024.b64.t128
rnn_forward x=f16/128x64x1024 w=[f16/3072x1024,f16/3072x1024,f16/3072x1024,f16/3072x1024] r=[f16/3072x1024,f16/3072x1024,f16/3072x1024,f16/3072x1024] bw=[f16/3072,f16/3072,f16/3072,f16/3072] br=[f16/3072,f16/3072,f16/3072,f16/3072] cell=gru layers=4 ; name=rnn.f16.gru.l4.h1024.b64.t128
rnn_forward x=f16/128x64x512 w=[f16/2048x512] r=[f16/2048x512] bw=[f16/2048] br=[f16/2048] ; name=rnn.f16.lstm.h512.b64.t128
rnn_forward x=f16/64x128x2048 w=[f16/8192x2048,f16/8192x2048] r=[f16/8192x2048,f16/8192x2048] bw=[f16/8192,f16/8192] br=[f16/8192,f16/8192] layers=2 ; name=rnn.f16.lstm.l2.h2048.b128.t64
rnn_forward x=f32/50x1x256 w=[f32/1024x256] r=[f32/1024x256] bw=[f32/1024] br=[f32/1024] ; name=rnn.f32.lstm.h256.b1.t50
rnn_forward x=f32/50x1x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=rnn.f32.gru.h256.b1.t50
rnn_backward dy=f16/128x64x1024 x=f16/128x64x1024 y=f16/128x64x1024 w=[f16/4096x1024] r=[f16/4096x1024] gates=f16/1x128x64x4096 cells=f16/1x128x64x1024 dw=? dr=? dbw=? dbr=? ; name=rnn.backward.f16.lstm.h1024.b64.t128
rnn_backward dy=f16/128x64x512 x=f16/128x64x512 y=f16/128x64x512 w=[f16/2048x512] r=[f16/2048x512] gates=f16/1x128x64x2048 cells=f16/1x128x64x512 dw=? dr=? dbw=? dbr=? ; name=rnn.backward.f16.lstm.h512.b64.t128

# half precision on a device: a step, one sequence, both directions, gradients
rnn_forward x=f16/1x1x512 w=[f16/2048x512] r=[f16/2048x512] bw=[f16/2048] br=[f16/2048] ; name=rnn.f16.lstm.h512.b1.t1
rnn_forward x=f16/1x1x1024 w=[f16/4096x1024] r=[f16/4096x1024] bw=[f16/4096] br=[f16/4096] ; name=rnn.f16.lstm.h1024.b1.t1
rnn_forward x=f16/1x1x2048 w=[f16/8192x2048] r=[f16/8192x2048] bw=[f16/8192] br=[f16/8192] ; name=rnn.f16.lstm.h2048.b1.t1
rnn_forward x=bf16/1x8x1024 w=[bf16/3072x1024] r=[bf16/3072x1024] bw=[bf16/3072] br=[bf16/3072] cell=gru ; name=rnn.bf16.gru.h1024.b8.t1
rnn_forward x=f16/50x1x256 w=[f16/1024x256] r=[f16/1024x256] bw=[f16/1024] br=[f16/1024] ; name=rnn.f16.lstm.h256.b1.t50
rnn_forward x=bf16/100x16x512 w=[bf16/2048x512,bf16/2048x512] r=[bf16/2048x512,bf16/2048x512] bw=[bf16/2048,bf16/2048] br=[bf16/2048,bf16/2048] direction=both ; name=rnn.bf16.lstm.h512.b16.t100.both
rnn_forward x=f16/512x128x256 w=[f16/768x256] r=[f16/768x256] bw=[f16/768] br=[f16/768] cell=gru ; name=rnn.f16.gru.h256.b128.t512
rnn_forward x=f16/32x128x1024 w=[f16/4096x1024] r=[f16/4096x1024] bw=[f16/4096] br=[f16/4096] ; name=rnn.f16.lstm.h1024.b128.t32
rnn_forward x=f16/512x64x128 w=[f16/512x128] r=[f16/512x128] bw=[f16/512] br=[f16/512] ; name=rnn.f16.lstm.h128.b64.t512
rnn_backward dy=f16/128x64x1024 x=f16/128x64x1024 y=f16/128x64x1024 w=[f16/4096x1024,f16/4096x1024,f16/4096x1024,f16/4096x1024] r=[f16/4096x1024,f16/4096x1024,f16/4096x1024,f16/4096x1024] gates=f16/4x128x64x4096 cells=f16/4x128x64x1024 inner=f16/3x128x64x1024 dw=? dr=? dbw=? dbr=? layers=4 ; name=rnn.backward.f16.lstm.l4.h1024.b64.t128
rnn_backward dy=f16/128x64x1024 x=f16/128x64x1024 y=f16/128x64x1024 w=[f16/3072x1024] r=[f16/3072x1024] gates=f16/1x128x64x4096 dw=? dr=? dbw=? dbr=? cell=gru ; name=rnn.backward.f16.gru.h1024.b64.t128
rnn_backward dy=f16/64x128x2048 x=f16/64x128x2048 y=f16/64x128x2048 w=[f16/8192x2048] r=[f16/8192x2048] gates=f16/1x64x128x8192 cells=f16/1x64x128x2048 dw=? dr=? dbw=? dbr=? ; name=rnn.backward.f16.lstm.h2048.b128.t64
rnn_backward dy=bf16/100x16x256 x=bf16/100x16x256 y=bf16/100x16x256 w=[bf16/768x256] r=[bf16/768x256] gates=bf16/1x100x16x1024 dw=? dr=? dbw=? dbr=? cell=gru ; name=rnn.backward.bf16.gru.h256.b16.t100
rnn_backward dy=f16/128x64x1024 x=f16/128x64x1024 y=f16/128x64x1024 w=[f16/3072x1024,f16/3072x1024,f16/3072x1024,f16/3072x1024] r=[f16/3072x1024,f16/3072x1024,f16/3072x1024,f16/3072x1024] gates=f16/4x128x64x4096 inner=f16/3x128x64x1024 dw=? dr=? dbw=? dbr=? cell=gru layers=4 ; name=rnn.backward.f16.gru.l4.h1024.b64.t128
rnn_forward x=f16/128x64x512 w=[f16/2048x512,f16/2048x512,f16/2048x512,f16/2048x512] r=[f16/2048x512,f16/2048x512,f16/2048x512,f16/2048x512] bw=[f16/2048,f16/2048,f16/2048,f16/2048] br=[f16/2048,f16/2048,f16/2048,f16/2048] layers=4 ; name=rnn.f16.lstm.l4.h512.b64.t128

# a projection (speech), the reset before the product (ONNX's default), f64 (gradients checked)
rnn_forward x=f32/32x16x512 w=[f32/2048x512] r=[f32/2048x256] bw=[f32/2048] br=[f32/2048] projection=[f32/256x512] ; name=rnn.f32.lstm.h512.p256.b16.t32
rnn_forward x=f32/32x1x512 w=[f32/2048x512] r=[f32/2048x256] bw=[f32/2048] br=[f32/2048] projection=[f32/256x512] ; name=rnn.f32.lstm.h512.p256.b1.t32
rnn_forward x=f32/32x16x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru reset=before ; name=rnn.f32.gru.before.h256.b16.t32
rnn_forward x=f32/32x1x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru reset=before ; name=rnn.f32.gru.before.h256.b1.t32
rnn_forward x=f64/32x16x256 w=[f64/1024x256] r=[f64/1024x256] bw=[f64/1024] br=[f64/1024] ; name=rnn.f64.lstm.h256.b16.t32
rnn_forward x=f64/32x16x256 w=[f64/768x256] r=[f64/768x256] bw=[f64/768] br=[f64/768] cell=gru ; name=rnn.f64.gru.h256.b16.t32
rnn_backward dy=f32/32x16x256 x=f32/32x16x512 y=f32/32x16x256 w=[f32/2048x512] r=[f32/2048x256] projection=[f32/256x512] gates=f32/1x32x16x2048 cells=f32/1x32x16x512 dw=? dr=? dbw=? dbr=? dprojection=? ; name=rnn.backward.f32.lstm.h512.p256.b16.t32
rnn_backward dy=f32/32x16x256 x=f32/32x16x256 y=f32/32x16x256 w=[f32/768x256] r=[f32/768x256] gates=f32/1x32x16x768 dw=? dr=? dbw=? dbr=? cell=gru reset=before ; name=rnn.backward.f32.gru.before.h256.b16.t32
rnn_backward dy=f64/32x16x256 x=f64/32x16x256 y=f64/32x16x256 w=[f64/1024x256] r=[f64/1024x256] gates=f64/1x32x16x1024 cells=f64/1x32x16x256 dw=? dr=? dbw=? dbr=? ; name=rnn.backward.f64.lstm.h256.b16.t32

# Recurrent networks over the grid of 128 to 2048 units, 1 to 128 sequences, 1 to 512 steps. Drawn before anything was made for them.
rnn_forward x=bf16/512x6x128 w=[bf16/384x128] r=[bf16/384x128] bw=[bf16/384] br=[bf16/384] cell=gru ; name=h128.b6.t512.l1.gru.bf16
rnn_backward dy=bf16/512x6x128 x=bf16/512x6x128 y=bf16/512x6x128 w=[bf16/384x128] r=[bf16/384x128] gates=bf16/1x512x6x512 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h128.b6.t512.l1.gru.bf16.backward
rnn_forward x=f32/50x96x512 w=[f32/512x512,f32/512x512,f32/512x512] r=[f32/512x512,f32/512x512,f32/512x512] bw=[f32/512,f32/512,f32/512] br=[f32/512,f32/512,f32/512] cell=tanh layers=3 ; name=h512.b96.t50.l3.tanh.f32
rnn_backward dy=f32/50x96x512 x=f32/50x96x512 y=f32/50x96x512 w=[f32/512x512,f32/512x512,f32/512x512] r=[f32/512x512,f32/512x512,f32/512x512] inner=f32/2x50x96x512 dx=? dw=? dr=? dbw=? dbr=? cell=tanh layers=3 ; name=h512.b96.t50.l3.tanh.f32.backward
rnn_forward x=f32/50x4x1664 w=[f32/4992x1664,f32/4992x1664,f32/4992x1664] r=[f32/4992x1664,f32/4992x1664,f32/4992x1664] bw=[f32/4992,f32/4992,f32/4992] br=[f32/4992,f32/4992,f32/4992] cell=gru layers=3 ; name=h1664.b4.t50.l3.gru.f32
rnn_backward dy=f32/50x4x1664 x=f32/50x4x1664 y=f32/50x4x1664 w=[f32/4992x1664,f32/4992x1664,f32/4992x1664] r=[f32/4992x1664,f32/4992x1664,f32/4992x1664] gates=f32/3x50x4x6656 inner=f32/2x50x4x1664 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=3 ; name=h1664.b4.t50.l3.gru.f32.backward
rnn_forward x=f32/80x64x768 w=[f32/768x768] r=[f32/768x768] bw=[f32/768] br=[f32/768] cell=tanh ; name=h768.b64.t80.l1.tanh.f32
rnn_backward dy=f32/80x64x768 x=f32/80x64x768 y=f32/80x64x768 w=[f32/768x768] r=[f32/768x768] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=h768.b64.t80.l1.tanh.f32.backward
rnn_forward x=f32/16x24x384 w=[f32/1536x384] r=[f32/1536x384] bw=[f32/1536] br=[f32/1536] ; name=h384.b24.t16.l1.lstm.f32
rnn_backward dy=f32/16x24x384 x=f32/16x24x384 y=f32/16x24x384 w=[f32/1536x384] r=[f32/1536x384] gates=f32/1x16x24x1536 cells=f32/1x16x24x384 dx=? dw=? dr=? dbw=? dbr=? ; name=h384.b24.t16.l1.lstm.f32.backward
rnn_forward x=f16/2x128x1280 w=[f16/3840x1280,f16/3840x1280,f16/3840x1280] r=[f16/3840x1280,f16/3840x1280,f16/3840x1280] bw=[f16/3840,f16/3840,f16/3840] br=[f16/3840,f16/3840,f16/3840] cell=gru layers=3 ; name=h1280.b128.t2.l3.gru.f16
rnn_backward dy=f16/2x128x1280 x=f16/2x128x1280 y=f16/2x128x1280 w=[f16/3840x1280,f16/3840x1280,f16/3840x1280] r=[f16/3840x1280,f16/3840x1280,f16/3840x1280] gates=f16/3x2x128x5120 inner=f16/2x2x128x1280 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=3 ; name=h1280.b128.t2.l3.gru.f16.backward
rnn_forward x=f32/25x16x1024 w=[f32/4096x1024,f32/4096x1024,f32/4096x1024] r=[f32/4096x1024,f32/4096x1024,f32/4096x1024] bw=[f32/4096,f32/4096,f32/4096] br=[f32/4096,f32/4096,f32/4096] layers=3 ; name=h1024.b16.t25.l3.lstm.f32
rnn_backward dy=f32/25x16x1024 x=f32/25x16x1024 y=f32/25x16x1024 w=[f32/4096x1024,f32/4096x1024,f32/4096x1024] r=[f32/4096x1024,f32/4096x1024,f32/4096x1024] gates=f32/3x25x16x4096 cells=f32/3x25x16x1024 inner=f32/2x25x16x1024 dx=? dw=? dr=? dbw=? dbr=? layers=3 ; name=h1024.b16.t25.l3.lstm.f32.backward
rnn_forward x=f32/33x12x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=h128.b12.t33.l1.lstm.f32
rnn_backward dy=f32/33x12x128 x=f32/33x12x128 y=f32/33x12x128 w=[f32/512x128] r=[f32/512x128] gates=f32/1x33x12x512 cells=f32/1x33x12x128 dx=? dw=? dr=? dbw=? dbr=? ; name=h128.b12.t33.l1.lstm.f32.backward
rnn_forward x=f16/25x24x832 w=[f16/832x832] r=[f16/832x832] bw=[f16/832] br=[f16/832] cell=tanh ; name=h832.b24.t25.l1.tanh.f16
rnn_backward dy=f16/25x24x832 x=f16/25x24x832 y=f16/25x24x832 w=[f16/832x832] r=[f16/832x832] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=h832.b24.t25.l1.tanh.f16.backward
rnn_forward x=f16/16x48x896 w=[f16/896x896] r=[f16/896x896] bw=[f16/896] br=[f16/896] cell=tanh ; name=h896.b48.t16.l1.tanh.f16
rnn_backward dy=f16/16x48x896 x=f16/16x48x896 y=f16/16x48x896 w=[f16/896x896] r=[f16/896x896] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=h896.b48.t16.l1.tanh.f16.backward
rnn_forward x=bf16/50x3x896 w=[bf16/2688x896,bf16/2688x896] r=[bf16/2688x896,bf16/2688x896] bw=[bf16/2688,bf16/2688] br=[bf16/2688,bf16/2688] cell=gru layers=2 ; name=h896.b3.t50.l2.gru.bf16
rnn_backward dy=bf16/50x3x896 x=bf16/50x3x896 y=bf16/50x3x896 w=[bf16/2688x896,bf16/2688x896] r=[bf16/2688x896,bf16/2688x896] gates=bf16/2x50x3x3584 inner=bf16/1x50x3x896 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=2 ; name=h896.b3.t50.l2.gru.bf16.backward
rnn_forward x=f32/2x8x2048 w=[f32/8192x2048] r=[f32/8192x2048] bw=[f32/8192] br=[f32/8192] ; name=h2048.b8.t2.l1.lstm.f32
rnn_backward dy=f32/2x8x2048 x=f32/2x8x2048 y=f32/2x8x2048 w=[f32/8192x2048] r=[f32/8192x2048] gates=f32/1x2x8x8192 cells=f32/1x2x8x2048 dx=? dw=? dr=? dbw=? dbr=? ; name=h2048.b8.t2.l1.lstm.f32.backward
rnn_forward x=f32/50x40x512 w=[f32/1536x512,f32/1536x512] r=[f32/1536x512,f32/1536x512] bw=[f32/1536,f32/1536] br=[f32/1536,f32/1536] cell=gru layers=2 ; name=h512.b40.t50.l2.gru.f32
rnn_backward dy=f32/50x40x512 x=f32/50x40x512 y=f32/50x40x512 w=[f32/1536x512,f32/1536x512] r=[f32/1536x512,f32/1536x512] gates=f32/2x50x40x2048 inner=f32/1x50x40x512 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=2 ; name=h512.b40.t50.l2.gru.f32.backward
rnn_forward x=bf16/25x96x1024 w=[bf16/1024x1024] r=[bf16/1024x1024] bw=[bf16/1024] br=[bf16/1024] cell=tanh ; name=h1024.b96.t25.l1.tanh.bf16
rnn_backward dy=bf16/25x96x1024 x=bf16/25x96x1024 y=bf16/25x96x1024 w=[bf16/1024x1024] r=[bf16/1024x1024] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=h1024.b96.t25.l1.tanh.bf16.backward
rnn_forward x=f32/80x48x320 w=[f32/960x320,f32/960x320] r=[f32/960x320,f32/960x320] bw=[f32/960,f32/960] br=[f32/960,f32/960] cell=gru layers=2 ; name=h320.b48.t80.l2.gru.f32
rnn_backward dy=f32/80x48x320 x=f32/80x48x320 y=f32/80x48x320 w=[f32/960x320,f32/960x320] r=[f32/960x320,f32/960x320] gates=f32/2x80x48x1280 inner=f32/1x80x48x320 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=2 ; name=h320.b48.t80.l2.gru.f32.backward
rnn_forward x=f32/100x8x1024 w=[f32/4096x1024,f32/4096x1024] r=[f32/4096x1024,f32/4096x1024] bw=[f32/4096,f32/4096] br=[f32/4096,f32/4096] layers=2 ; name=h1024.b8.t100.l2.lstm.f32
rnn_backward dy=f32/100x8x1024 x=f32/100x8x1024 y=f32/100x8x1024 w=[f32/4096x1024,f32/4096x1024] r=[f32/4096x1024,f32/4096x1024] gates=f32/2x100x8x4096 cells=f32/2x100x8x1024 inner=f32/1x100x8x1024 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=h1024.b8.t100.l2.lstm.f32.backward
rnn_forward x=f32/25x12x144 w=[f32/432x144] r=[f32/432x144] bw=[f32/432] br=[f32/432] cell=gru ; name=h144.b12.t25.l1.gru.f32
rnn_backward dy=f32/25x12x144 x=f32/25x12x144 y=f32/25x12x144 w=[f32/432x144] r=[f32/432x144] gates=f32/1x25x12x576 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h144.b12.t25.l1.gru.f32.backward
rnn_forward x=f16/160x4x448 w=[f16/1344x448] r=[f16/1344x448] bw=[f16/1344] br=[f16/1344] cell=gru ; name=h448.b4.t160.l1.gru.f16
rnn_backward dy=f16/160x4x448 x=f16/160x4x448 y=f16/160x4x448 w=[f16/1344x448] r=[f16/1344x448] gates=f16/1x160x4x1792 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h448.b4.t160.l1.gru.f16.backward
rnn_forward x=f32/25x32x1408 w=[f32/5632x1408] r=[f32/5632x1408] bw=[f32/5632] br=[f32/5632] ; name=h1408.b32.t25.l1.lstm.f32
rnn_backward dy=f32/25x32x1408 x=f32/25x32x1408 y=f32/25x32x1408 w=[f32/5632x1408] r=[f32/5632x1408] gates=f32/1x25x32x5632 cells=f32/1x25x32x1408 dx=? dw=? dr=? dbw=? dbr=? ; name=h1408.b32.t25.l1.lstm.f32.backward
rnn_forward x=bf16/5x4x1792 w=[bf16/1792x1792] r=[bf16/1792x1792] bw=[bf16/1792] br=[bf16/1792] cell=tanh ; name=h1792.b4.t5.l1.tanh.bf16
rnn_backward dy=bf16/5x4x1792 x=bf16/5x4x1792 y=bf16/5x4x1792 w=[bf16/1792x1792] r=[bf16/1792x1792] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=h1792.b4.t5.l1.tanh.bf16.backward
rnn_forward x=f16/25x1x1536 w=[f16/6144x1536,f16/6144x1536,f16/6144x1536] r=[f16/6144x1536,f16/6144x1536,f16/6144x1536] bw=[f16/6144,f16/6144,f16/6144] br=[f16/6144,f16/6144,f16/6144] layers=3 ; name=h1536.b1.t25.l3.lstm.f16
rnn_backward dy=f16/25x1x1536 x=f16/25x1x1536 y=f16/25x1x1536 w=[f16/6144x1536,f16/6144x1536,f16/6144x1536] r=[f16/6144x1536,f16/6144x1536,f16/6144x1536] gates=f16/3x25x1x6144 cells=f16/3x25x1x1536 inner=f16/2x25x1x1536 dx=? dw=? dr=? dbw=? dbr=? layers=3 ; name=h1536.b1.t25.l3.lstm.f16.backward
rnn_forward x=bf16/50x6x128 w=[bf16/128x128,bf16/128x128] r=[bf16/128x128,bf16/128x128] bw=[bf16/128,bf16/128] br=[bf16/128,bf16/128] cell=tanh layers=2 ; name=h128.b6.t50.l2.tanh.bf16
rnn_backward dy=bf16/50x6x128 x=bf16/50x6x128 y=bf16/50x6x128 w=[bf16/128x128,bf16/128x128] r=[bf16/128x128,bf16/128x128] inner=bf16/1x50x6x128 dx=? dw=? dr=? dbw=? dbr=? cell=tanh layers=2 ; name=h128.b6.t50.l2.tanh.bf16.backward
rnn_forward x=bf16/80x20x1088 w=[bf16/3264x1088,bf16/3264x1088] r=[bf16/3264x1088,bf16/3264x1088] bw=[bf16/3264,bf16/3264] br=[bf16/3264,bf16/3264] cell=gru layers=2 ; name=h1088.b20.t80.l2.gru.bf16
rnn_backward dy=bf16/80x20x1088 x=bf16/80x20x1088 y=bf16/80x20x1088 w=[bf16/3264x1088,bf16/3264x1088] r=[bf16/3264x1088,bf16/3264x1088] gates=bf16/2x80x20x4352 inner=bf16/1x80x20x1088 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=2 ; name=h1088.b20.t80.l2.gru.bf16.backward
rnn_forward x=f16/5x40x1000 w=[f16/4000x1000,f16/4000x1000,f16/4000x1000] r=[f16/4000x1000,f16/4000x1000,f16/4000x1000] bw=[f16/4000,f16/4000,f16/4000] br=[f16/4000,f16/4000,f16/4000] layers=3 ; name=h1000.b40.t5.l3.lstm.f16
rnn_backward dy=f16/5x40x1000 x=f16/5x40x1000 y=f16/5x40x1000 w=[f16/4000x1000,f16/4000x1000,f16/4000x1000] r=[f16/4000x1000,f16/4000x1000,f16/4000x1000] gates=f16/3x5x40x4000 cells=f16/3x5x40x1000 inner=f16/2x5x40x1000 dx=? dw=? dr=? dbw=? dbr=? layers=3 ; name=h1000.b40.t5.l3.lstm.f16.backward
rnn_forward x=bf16/5x16x1536 w=[bf16/6144x1536] r=[bf16/6144x1536] bw=[bf16/6144] br=[bf16/6144] ; name=h1536.b16.t5.l1.lstm.bf16
rnn_backward dy=bf16/5x16x1536 x=bf16/5x16x1536 y=bf16/5x16x1536 w=[bf16/6144x1536] r=[bf16/6144x1536] gates=bf16/1x5x16x6144 cells=bf16/1x5x16x1536 dx=? dw=? dr=? dbw=? dbr=? ; name=h1536.b16.t5.l1.lstm.bf16.backward
rnn_forward x=bf16/50x2x144 w=[bf16/144x144] r=[bf16/144x144] bw=[bf16/144] br=[bf16/144] cell=tanh ; name=h144.b2.t50.l1.tanh.bf16
rnn_backward dy=bf16/50x2x144 x=bf16/50x2x144 y=bf16/50x2x144 w=[bf16/144x144] r=[bf16/144x144] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=h144.b2.t50.l1.tanh.bf16.backward

# Recurrent networks of the field, away from rnn.q: language models, taggers, time series, translation, speech, one step; then a grid.

# language models of words: medium and large of 2014, AWD-LSTM's
rnn_forward x=f32/35x20x650 w=[f32/2600x650,f32/2600x650] r=[f32/2600x650,f32/2600x650] bw=[f32/2600,f32/2600] br=[f32/2600,f32/2600] layers=2 ; name=ptb.h650.lstm.f32
rnn_backward dy=f32/35x20x650 x=f32/35x20x650 y=f32/35x20x650 w=[f32/2600x650,f32/2600x650] r=[f32/2600x650,f32/2600x650] gates=f32/2x35x20x2600 cells=f32/2x35x20x650 inner=f32/1x35x20x650 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=ptb.h650.lstm.f32.backward
rnn_forward x=f16/35x20x650 w=[f16/2600x650,f16/2600x650] r=[f16/2600x650,f16/2600x650] bw=[f16/2600,f16/2600] br=[f16/2600,f16/2600] layers=2 ; name=ptb.h650.lstm.f16
rnn_backward dy=f16/35x20x650 x=f16/35x20x650 y=f16/35x20x650 w=[f16/2600x650,f16/2600x650] r=[f16/2600x650,f16/2600x650] gates=f16/2x35x20x2600 cells=f16/2x35x20x650 inner=f16/1x35x20x650 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=ptb.h650.lstm.f16.backward
rnn_forward x=f32/35x20x1500 w=[f32/6000x1500,f32/6000x1500] r=[f32/6000x1500,f32/6000x1500] bw=[f32/6000,f32/6000] br=[f32/6000,f32/6000] layers=2 ; name=ptb.h1500.lstm.f32
rnn_backward dy=f32/35x20x1500 x=f32/35x20x1500 y=f32/35x20x1500 w=[f32/6000x1500,f32/6000x1500] r=[f32/6000x1500,f32/6000x1500] gates=f32/2x35x20x6000 cells=f32/2x35x20x1500 inner=f32/1x35x20x1500 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=ptb.h1500.lstm.f32.backward
rnn_forward x=f16/35x20x1500 w=[f16/6000x1500,f16/6000x1500] r=[f16/6000x1500,f16/6000x1500] bw=[f16/6000,f16/6000] br=[f16/6000,f16/6000] layers=2 ; name=ptb.h1500.lstm.f16
rnn_backward dy=f16/35x20x1500 x=f16/35x20x1500 y=f16/35x20x1500 w=[f16/6000x1500,f16/6000x1500] r=[f16/6000x1500,f16/6000x1500] gates=f16/2x35x20x6000 cells=f16/2x35x20x1500 inner=f16/1x35x20x1500 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=ptb.h1500.lstm.f16.backward
rnn_forward x=f16/70x80x400 w=[f16/4600x400] r=[f16/4600x1150] bw=[f16/4600] br=[f16/4600] ; name=awd.h1150.lstm.f16
rnn_backward dy=f16/70x80x1150 x=f16/70x80x400 y=f16/70x80x1150 w=[f16/4600x400] r=[f16/4600x1150] gates=f16/1x70x80x4600 cells=f16/1x70x80x1150 dx=? dw=? dr=? dbw=? dbr=? ; name=awd.h1150.lstm.f16.backward

# taggers, classifiers of text, time series
rnn_forward x=f32/50x32x100 w=[f32/400x100,f32/400x100] r=[f32/400x100,f32/400x100] bw=[f32/400,f32/400] br=[f32/400,f32/400] direction=both ; name=tagger.h100.lstm.f32
rnn_backward dy=f32/50x32x200 x=f32/50x32x100 y=f32/50x32x200 w=[f32/400x100,f32/400x100] r=[f32/400x100,f32/400x100] gates=f32/2x50x32x400 cells=f32/2x50x32x100 dx=? dw=? dr=? dbw=? dbr=? direction=both ; name=tagger.h100.lstm.f32.backward
rnn_forward x=f16/50x64x300 w=[f16/800x300,f16/800x300] r=[f16/800x200,f16/800x200] bw=[f16/800,f16/800] br=[f16/800,f16/800] direction=both ; name=tagger.h200.lstm.f16
rnn_backward dy=f16/50x64x400 x=f16/50x64x300 y=f16/50x64x400 w=[f16/800x300,f16/800x300] r=[f16/800x200,f16/800x200] gates=f16/2x50x64x800 cells=f16/2x50x64x200 dx=? dw=? dr=? dbw=? dbr=? direction=both ; name=tagger.h200.lstm.f16.backward
rnn_forward x=f32/200x32x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=imdb.h128.lstm.f32
rnn_backward dy=f32/200x32x128 x=f32/200x32x128 y=f32/200x32x128 w=[f32/512x128] r=[f32/512x128] gates=f32/1x200x32x512 cells=f32/1x200x32x128 dx=? dw=? dr=? dbw=? dbr=? ; name=imdb.h128.lstm.f32.backward
rnn_forward x=f32/100x64x8 w=[f32/256x8,f32/256x64] r=[f32/256x64,f32/256x64] bw=[f32/256,f32/256] br=[f32/256,f32/256] layers=2 ; name=series.h64.lstm.f32
rnn_backward dy=f32/100x64x64 x=f32/100x64x8 y=f32/100x64x64 w=[f32/256x8,f32/256x64] r=[f32/256x64,f32/256x64] gates=f32/2x100x64x256 cells=f32/2x100x64x64 inner=f32/1x100x64x64 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=series.h64.lstm.f32.backward
rnn_forward x=f32/24x256x1 w=[f32/150x1] r=[f32/150x50] bw=[f32/150] br=[f32/150] cell=gru ; name=series.h50.gru.f32
rnn_backward dy=f32/24x256x50 x=f32/24x256x1 y=f32/24x256x50 w=[f32/150x1] r=[f32/150x50] gates=f32/1x24x256x200 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=series.h50.gru.f32.backward
rnn_forward x=f16/40x32x512 w=[f16/2048x512,f16/2048x512,f16/2048x1024,f16/2048x1024] r=[f16/2048x512,f16/2048x512,f16/2048x512,f16/2048x512] bw=[f16/2048,f16/2048,f16/2048,f16/2048] br=[f16/2048,f16/2048,f16/2048,f16/2048] layers=2 direction=both ; name=elmo.h512.lstm.f16
rnn_backward dy=f16/40x32x1024 x=f16/40x32x512 y=f16/40x32x1024 w=[f16/2048x512,f16/2048x512,f16/2048x1024,f16/2048x1024] r=[f16/2048x512,f16/2048x512,f16/2048x512,f16/2048x512] gates=f16/4x40x32x2048 cells=f16/4x40x32x512 inner=f16/1x40x32x1024 dx=? dw=? dr=? dbw=? dbr=? layers=2 direction=both ; name=elmo.h512.lstm.f16.backward

# translation and speech
rnn_forward x=f16/50x128x1024 w=[f16/4096x1024,f16/4096x1024,f16/4096x1024,f16/4096x1024] r=[f16/4096x1024,f16/4096x1024,f16/4096x1024,f16/4096x1024] bw=[f16/4096,f16/4096,f16/4096,f16/4096] br=[f16/4096,f16/4096,f16/4096,f16/4096] layers=4 ; name=gnmt.h1024.lstm.f16
rnn_backward dy=f16/50x128x1024 x=f16/50x128x1024 y=f16/50x128x1024 w=[f16/4096x1024,f16/4096x1024,f16/4096x1024,f16/4096x1024] r=[f16/4096x1024,f16/4096x1024,f16/4096x1024,f16/4096x1024] gates=f16/4x50x128x4096 cells=f16/4x50x128x1024 inner=f16/3x50x128x1024 dx=? dw=? dr=? dbw=? dbr=? layers=4 ; name=gnmt.h1024.lstm.f16.backward
rnn_forward x=bf16/50x64x1024 w=[bf16/4096x1024,bf16/4096x1024] r=[bf16/4096x1024,bf16/4096x1024] bw=[bf16/4096,bf16/4096] br=[bf16/4096,bf16/4096] direction=both ; name=gnmt.both.lstm.bf16
rnn_backward dy=bf16/50x64x2048 x=bf16/50x64x1024 y=bf16/50x64x2048 w=[bf16/4096x1024,bf16/4096x1024] r=[bf16/4096x1024,bf16/4096x1024] gates=bf16/2x50x64x4096 cells=bf16/2x50x64x1024 dx=? dw=? dr=? dbw=? dbr=? direction=both ; name=gnmt.both.lstm.bf16.backward
rnn_forward x=f32/30x64x256 w=[f32/768x256] r=[f32/768x256] bw=[f32/768] br=[f32/768] cell=gru ; name=seq2seq.h256.gru.f32
rnn_backward dy=f32/30x64x256 x=f32/30x64x256 y=f32/30x64x256 w=[f32/768x256] r=[f32/768x256] gates=f32/1x30x64x1024 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=seq2seq.h256.gru.f32.backward
rnn_forward x=f16/30x64x512 w=[f16/1536x512,f16/1536x512,f16/1536x1024,f16/1536x1024] r=[f16/1536x512,f16/1536x512,f16/1536x512,f16/1536x512] bw=[f16/1536,f16/1536,f16/1536,f16/1536] br=[f16/1536,f16/1536,f16/1536,f16/1536] cell=gru layers=2 direction=both ; name=seq2seq.h512.gru.f16
rnn_backward dy=f16/30x64x1024 x=f16/30x64x512 y=f16/30x64x1024 w=[f16/1536x512,f16/1536x512,f16/1536x1024,f16/1536x1024] r=[f16/1536x512,f16/1536x512,f16/1536x512,f16/1536x512] gates=f16/4x30x64x2048 inner=f16/1x30x64x1024 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=2 direction=both ; name=seq2seq.h512.gru.f16.backward
rnn_forward x=f16/300x16x1312 w=[f16/2400x1312,f16/2400x1312,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600] r=[f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800] bw=[f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400] br=[f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400,f16/2400] cell=gru layers=5 direction=both ; name=deepspeech2.h800.gru.f16
rnn_backward dy=f16/300x16x1600 x=f16/300x16x1312 y=f16/300x16x1600 w=[f16/2400x1312,f16/2400x1312,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600,f16/2400x1600] r=[f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800] gates=f16/10x300x16x3200 inner=f16/4x300x16x1600 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=5 direction=both ; name=deepspeech2.h800.gru.f16.backward
rnn_forward x=f16/400x8x512 w=[f16/4096x512,f16/4096x1024] r=[f16/4096x1024,f16/4096x1024] bw=[f16/4096,f16/4096] br=[f16/4096,f16/4096] layers=2 ; name=rnnt.h1024.lstm.f16
rnn_backward dy=f16/400x8x1024 x=f16/400x8x512 y=f16/400x8x1024 w=[f16/4096x512,f16/4096x1024] r=[f16/4096x1024,f16/4096x1024] gates=f16/2x400x8x4096 cells=f16/2x400x8x1024 inner=f16/1x400x8x1024 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=rnnt.h1024.lstm.f16.backward
rnn_forward x=f32/400x16x512 w=[f32/1024x512,f32/1024x512,f32/1024x512,f32/1024x512,f32/1024x512,f32/1024x512] r=[f32/1024x256,f32/1024x256,f32/1024x256,f32/1024x256,f32/1024x256,f32/1024x256] bw=[f32/1024,f32/1024,f32/1024,f32/1024,f32/1024,f32/1024] br=[f32/1024,f32/1024,f32/1024,f32/1024,f32/1024,f32/1024] layers=3 direction=both ; name=las.h256.lstm.f32
rnn_backward dy=f32/400x16x512 x=f32/400x16x512 y=f32/400x16x512 w=[f32/1024x512,f32/1024x512,f32/1024x512,f32/1024x512,f32/1024x512,f32/1024x512] r=[f32/1024x256,f32/1024x256,f32/1024x256,f32/1024x256,f32/1024x256,f32/1024x256] gates=f32/6x400x16x1024 cells=f32/6x400x16x256 inner=f32/2x400x16x512 dx=? dw=? dr=? dbw=? dbr=? layers=3 direction=both ; name=las.h256.lstm.f32.backward
rnn_forward x=f32/60x1x1280 w=[f32/5120x1280] r=[f32/5120x1280] bw=[f32/5120] br=[f32/5120] ; name=deepspeech1.h1280.lstm.f32
rnn_forward x=f32/1x1x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=silero.h128.lstm.f32
rnn_forward x=f32/7x1x64 w=[f32/256x64,f32/256x64] r=[f32/256x64,f32/256x64] bw=[f32/256,f32/256] br=[f32/256,f32/256] layers=2 ; name=silero.h64.lstm.f32
rnn_forward x=f16/1x1x896 w=[f16/2688x896] r=[f16/2688x896] bw=[f16/2688] br=[f16/2688] cell=gru ; name=wavernn.h896.gru.f16
rnn_forward x=f32/1x1x512 w=[f32/1152x512] r=[f32/1152x384] bw=[f32/1152] br=[f32/1152] cell=gru ; name=lpcnet.h384.gru.f32
rnn_forward x=f32/60x16x32 w=[f32/32x32] r=[f32/32x32] bw=[f32/32] br=[f32/32] cell=tanh ; name=series.h32.tanh.f32
rnn_backward dy=f32/60x16x32 x=f32/60x16x32 y=f32/60x16x32 w=[f32/32x32] r=[f32/32x32] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=series.h32.tanh.f32.backward
rnn_forward x=f16/26x64x512 w=[f16/1024x512,f16/1024x512,f16/1024x512,f16/1024x512] r=[f16/1024x256,f16/1024x256,f16/1024x256,f16/1024x256] bw=[f16/1024,f16/1024,f16/1024,f16/1024] br=[f16/1024,f16/1024,f16/1024,f16/1024] layers=2 direction=both ; name=crnn.h256.lstm.f16
rnn_backward dy=f16/26x64x512 x=f16/26x64x512 y=f16/26x64x512 w=[f16/1024x512,f16/1024x512,f16/1024x512,f16/1024x512] r=[f16/1024x256,f16/1024x256,f16/1024x256,f16/1024x256] gates=f16/4x26x64x1024 cells=f16/4x26x64x256 inner=f16/1x26x64x512 dx=? dw=? dr=? dbw=? dbr=? layers=2 direction=both ; name=crnn.h256.lstm.f16.backward

# a grid
rnn_forward x=f16/100x1x128 w=[f16/512x128] r=[f16/512x128] bw=[f16/512] br=[f16/512] ; name=h128.b1.t100.lstm.f16
rnn_forward x=f16/100x8x128 w=[f16/512x128] r=[f16/512x128] bw=[f16/512] br=[f16/512] ; name=h128.b8.t100.lstm.f16
rnn_backward dy=f16/100x8x128 x=f16/100x8x128 y=f16/100x8x128 w=[f16/512x128] r=[f16/512x128] gates=f16/1x100x8x512 cells=f16/1x100x8x128 dx=? dw=? dr=? dbw=? dbr=? ; name=h128.b8.t100.lstm.f16.backward
rnn_forward x=f16/60x32x128 w=[f16/512x128] r=[f16/512x128] bw=[f16/512] br=[f16/512] ; name=h128.b32.t60.lstm.f16
rnn_forward x=f16/40x128x128 w=[f16/512x128] r=[f16/512x128] bw=[f16/512] br=[f16/512] ; name=h128.b128.t40.lstm.f16
rnn_backward dy=f16/40x128x128 x=f16/40x128x128 y=f16/40x128x128 w=[f16/512x128] r=[f16/512x128] gates=f16/1x40x128x512 cells=f16/1x40x128x128 dx=? dw=? dr=? dbw=? dbr=? ; name=h128.b128.t40.lstm.f16.backward
rnn_forward x=f16/1x16x128 w=[f16/512x128] r=[f16/512x128] bw=[f16/512] br=[f16/512] ; name=h128.b16.t1.lstm.f16
rnn_forward x=f16/100x1x384 w=[f16/1152x384] r=[f16/1152x384] bw=[f16/1152] br=[f16/1152] cell=gru ; name=h384.b1.t100.gru.f16
rnn_forward x=f16/100x8x384 w=[f16/1152x384] r=[f16/1152x384] bw=[f16/1152] br=[f16/1152] cell=gru ; name=h384.b8.t100.gru.f16
rnn_backward dy=f16/100x8x384 x=f16/100x8x384 y=f16/100x8x384 w=[f16/1152x384] r=[f16/1152x384] gates=f16/1x100x8x1536 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h384.b8.t100.gru.f16.backward
rnn_forward x=f16/60x32x384 w=[f16/1152x384] r=[f16/1152x384] bw=[f16/1152] br=[f16/1152] cell=gru ; name=h384.b32.t60.gru.f16
rnn_forward x=f16/40x128x384 w=[f16/1152x384] r=[f16/1152x384] bw=[f16/1152] br=[f16/1152] cell=gru ; name=h384.b128.t40.gru.f16
rnn_backward dy=f16/40x128x384 x=f16/40x128x384 y=f16/40x128x384 w=[f16/1152x384] r=[f16/1152x384] gates=f16/1x40x128x1536 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h384.b128.t40.gru.f16.backward
rnn_forward x=f16/1x16x384 w=[f16/1152x384] r=[f16/1152x384] bw=[f16/1152] br=[f16/1152] cell=gru ; name=h384.b16.t1.gru.f16
rnn_forward x=f16/100x1x768 w=[f16/3072x768] r=[f16/3072x768] bw=[f16/3072] br=[f16/3072] ; name=h768.b1.t100.lstm.f16
rnn_forward x=f16/100x8x768 w=[f16/3072x768] r=[f16/3072x768] bw=[f16/3072] br=[f16/3072] ; name=h768.b8.t100.lstm.f16
rnn_backward dy=f16/100x8x768 x=f16/100x8x768 y=f16/100x8x768 w=[f16/3072x768] r=[f16/3072x768] gates=f16/1x100x8x3072 cells=f16/1x100x8x768 dx=? dw=? dr=? dbw=? dbr=? ; name=h768.b8.t100.lstm.f16.backward
rnn_forward x=f16/60x32x768 w=[f16/3072x768] r=[f16/3072x768] bw=[f16/3072] br=[f16/3072] ; name=h768.b32.t60.lstm.f16
rnn_forward x=f16/40x128x768 w=[f16/3072x768] r=[f16/3072x768] bw=[f16/3072] br=[f16/3072] ; name=h768.b128.t40.lstm.f16
rnn_backward dy=f16/40x128x768 x=f16/40x128x768 y=f16/40x128x768 w=[f16/3072x768] r=[f16/3072x768] gates=f16/1x40x128x3072 cells=f16/1x40x128x768 dx=? dw=? dr=? dbw=? dbr=? ; name=h768.b128.t40.lstm.f16.backward
rnn_forward x=f16/1x16x768 w=[f16/3072x768] r=[f16/3072x768] bw=[f16/3072] br=[f16/3072] ; name=h768.b16.t1.lstm.f16
rnn_forward x=f16/100x1x1536 w=[f16/4608x1536] r=[f16/4608x1536] bw=[f16/4608] br=[f16/4608] cell=gru ; name=h1536.b1.t100.gru.f16
rnn_forward x=f16/100x8x1536 w=[f16/4608x1536] r=[f16/4608x1536] bw=[f16/4608] br=[f16/4608] cell=gru ; name=h1536.b8.t100.gru.f16
rnn_backward dy=f16/100x8x1536 x=f16/100x8x1536 y=f16/100x8x1536 w=[f16/4608x1536] r=[f16/4608x1536] gates=f16/1x100x8x6144 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h1536.b8.t100.gru.f16.backward
rnn_forward x=f16/60x32x1536 w=[f16/4608x1536] r=[f16/4608x1536] bw=[f16/4608] br=[f16/4608] cell=gru ; name=h1536.b32.t60.gru.f16
rnn_forward x=f16/40x128x1536 w=[f16/4608x1536] r=[f16/4608x1536] bw=[f16/4608] br=[f16/4608] cell=gru ; name=h1536.b128.t40.gru.f16
rnn_backward dy=f16/40x128x1536 x=f16/40x128x1536 y=f16/40x128x1536 w=[f16/4608x1536] r=[f16/4608x1536] gates=f16/1x40x128x6144 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h1536.b128.t40.gru.f16.backward
rnn_forward x=f16/1x16x1536 w=[f16/4608x1536] r=[f16/4608x1536] bw=[f16/4608] br=[f16/4608] cell=gru ; name=h1536.b16.t1.gru.f16
rnn_forward x=f16/100x1x2048 w=[f16/8192x2048] r=[f16/8192x2048] bw=[f16/8192] br=[f16/8192] ; name=h2048.b1.t100.lstm.f16
rnn_forward x=f16/100x8x2048 w=[f16/8192x2048] r=[f16/8192x2048] bw=[f16/8192] br=[f16/8192] ; name=h2048.b8.t100.lstm.f16
rnn_backward dy=f16/100x8x2048 x=f16/100x8x2048 y=f16/100x8x2048 w=[f16/8192x2048] r=[f16/8192x2048] gates=f16/1x100x8x8192 cells=f16/1x100x8x2048 dx=? dw=? dr=? dbw=? dbr=? ; name=h2048.b8.t100.lstm.f16.backward
rnn_forward x=f16/60x32x2048 w=[f16/8192x2048] r=[f16/8192x2048] bw=[f16/8192] br=[f16/8192] ; name=h2048.b32.t60.lstm.f16
rnn_forward x=f16/40x128x2048 w=[f16/8192x2048] r=[f16/8192x2048] bw=[f16/8192] br=[f16/8192] ; name=h2048.b128.t40.lstm.f16
rnn_backward dy=f16/40x128x2048 x=f16/40x128x2048 y=f16/40x128x2048 w=[f16/8192x2048] r=[f16/8192x2048] gates=f16/1x40x128x8192 cells=f16/1x40x128x2048 dx=? dw=? dr=? dbw=? dbr=? ; name=h2048.b128.t40.lstm.f16.backward
rnn_forward x=f16/1x16x2048 w=[f16/8192x2048] r=[f16/8192x2048] bw=[f16/8192] br=[f16/8192] ; name=h2048.b16.t1.lstm.f16
rnn_forward x=f32/100x1x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=h128.b1.t100.lstm.f32
rnn_forward x=f32/100x8x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=h128.b8.t100.lstm.f32
rnn_backward dy=f32/100x8x128 x=f32/100x8x128 y=f32/100x8x128 w=[f32/512x128] r=[f32/512x128] gates=f32/1x100x8x512 cells=f32/1x100x8x128 dx=? dw=? dr=? dbw=? dbr=? ; name=h128.b8.t100.lstm.f32.backward
rnn_forward x=f32/60x32x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=h128.b32.t60.lstm.f32
rnn_forward x=f32/40x128x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=h128.b128.t40.lstm.f32
rnn_backward dy=f32/40x128x128 x=f32/40x128x128 y=f32/40x128x128 w=[f32/512x128] r=[f32/512x128] gates=f32/1x40x128x512 cells=f32/1x40x128x128 dx=? dw=? dr=? dbw=? dbr=? ; name=h128.b128.t40.lstm.f32.backward
rnn_forward x=f32/1x16x128 w=[f32/512x128] r=[f32/512x128] bw=[f32/512] br=[f32/512] ; name=h128.b16.t1.lstm.f32
rnn_forward x=f32/100x1x384 w=[f32/1152x384] r=[f32/1152x384] bw=[f32/1152] br=[f32/1152] cell=gru ; name=h384.b1.t100.gru.f32
rnn_forward x=f32/100x8x384 w=[f32/1152x384] r=[f32/1152x384] bw=[f32/1152] br=[f32/1152] cell=gru ; name=h384.b8.t100.gru.f32
rnn_backward dy=f32/100x8x384 x=f32/100x8x384 y=f32/100x8x384 w=[f32/1152x384] r=[f32/1152x384] gates=f32/1x100x8x1536 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h384.b8.t100.gru.f32.backward
rnn_forward x=f32/60x32x384 w=[f32/1152x384] r=[f32/1152x384] bw=[f32/1152] br=[f32/1152] cell=gru ; name=h384.b32.t60.gru.f32
rnn_forward x=f32/40x128x384 w=[f32/1152x384] r=[f32/1152x384] bw=[f32/1152] br=[f32/1152] cell=gru ; name=h384.b128.t40.gru.f32
rnn_backward dy=f32/40x128x384 x=f32/40x128x384 y=f32/40x128x384 w=[f32/1152x384] r=[f32/1152x384] gates=f32/1x40x128x1536 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h384.b128.t40.gru.f32.backward
rnn_forward x=f32/1x16x384 w=[f32/1152x384] r=[f32/1152x384] bw=[f32/1152] br=[f32/1152] cell=gru ; name=h384.b16.t1.gru.f32
rnn_forward x=f32/100x1x768 w=[f32/3072x768] r=[f32/3072x768] bw=[f32/3072] br=[f32/3072] ; name=h768.b1.t100.lstm.f32
rnn_forward x=f32/100x8x768 w=[f32/3072x768] r=[f32/3072x768] bw=[f32/3072] br=[f32/3072] ; name=h768.b8.t100.lstm.f32
rnn_backward dy=f32/100x8x768 x=f32/100x8x768 y=f32/100x8x768 w=[f32/3072x768] r=[f32/3072x768] gates=f32/1x100x8x3072 cells=f32/1x100x8x768 dx=? dw=? dr=? dbw=? dbr=? ; name=h768.b8.t100.lstm.f32.backward
rnn_forward x=f32/60x32x768 w=[f32/3072x768] r=[f32/3072x768] bw=[f32/3072] br=[f32/3072] ; name=h768.b32.t60.lstm.f32
rnn_forward x=f32/40x128x768 w=[f32/3072x768] r=[f32/3072x768] bw=[f32/3072] br=[f32/3072] ; name=h768.b128.t40.lstm.f32
rnn_backward dy=f32/40x128x768 x=f32/40x128x768 y=f32/40x128x768 w=[f32/3072x768] r=[f32/3072x768] gates=f32/1x40x128x3072 cells=f32/1x40x128x768 dx=? dw=? dr=? dbw=? dbr=? ; name=h768.b128.t40.lstm.f32.backward
rnn_forward x=f32/1x16x768 w=[f32/3072x768] r=[f32/3072x768] bw=[f32/3072] br=[f32/3072] ; name=h768.b16.t1.lstm.f32
rnn_forward x=f32/100x1x1536 w=[f32/4608x1536] r=[f32/4608x1536] bw=[f32/4608] br=[f32/4608] cell=gru ; name=h1536.b1.t100.gru.f32
rnn_forward x=f32/100x8x1536 w=[f32/4608x1536] r=[f32/4608x1536] bw=[f32/4608] br=[f32/4608] cell=gru ; name=h1536.b8.t100.gru.f32
rnn_backward dy=f32/100x8x1536 x=f32/100x8x1536 y=f32/100x8x1536 w=[f32/4608x1536] r=[f32/4608x1536] gates=f32/1x100x8x6144 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h1536.b8.t100.gru.f32.backward
rnn_forward x=f32/60x32x1536 w=[f32/4608x1536] r=[f32/4608x1536] bw=[f32/4608] br=[f32/4608] cell=gru ; name=h1536.b32.t60.gru.f32
rnn_forward x=f32/40x128x1536 w=[f32/4608x1536] r=[f32/4608x1536] bw=[f32/4608] br=[f32/4608] cell=gru ; name=h1536.b128.t40.gru.f32
rnn_backward dy=f32/40x128x1536 x=f32/40x128x1536 y=f32/40x128x1536 w=[f32/4608x1536] r=[f32/4608x1536] gates=f32/1x40x128x6144 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h1536.b128.t40.gru.f32.backward
rnn_forward x=f32/1x16x1536 w=[f32/4608x1536] r=[f32/4608x1536] bw=[f32/4608] br=[f32/4608] cell=gru ; name=h1536.b16.t1.gru.f32
rnn_forward x=f32/100x1x2048 w=[f32/8192x2048] r=[f32/8192x2048] bw=[f32/8192] br=[f32/8192] ; name=h2048.b1.t100.lstm.f32
rnn_forward x=f32/100x8x2048 w=[f32/8192x2048] r=[f32/8192x2048] bw=[f32/8192] br=[f32/8192] ; name=h2048.b8.t100.lstm.f32
rnn_backward dy=f32/100x8x2048 x=f32/100x8x2048 y=f32/100x8x2048 w=[f32/8192x2048] r=[f32/8192x2048] gates=f32/1x100x8x8192 cells=f32/1x100x8x2048 dx=? dw=? dr=? dbw=? dbr=? ; name=h2048.b8.t100.lstm.f32.backward
rnn_forward x=f32/60x32x2048 w=[f32/8192x2048] r=[f32/8192x2048] bw=[f32/8192] br=[f32/8192] ; name=h2048.b32.t60.lstm.f32
rnn_forward x=f32/40x128x2048 w=[f32/8192x2048] r=[f32/8192x2048] bw=[f32/8192] br=[f32/8192] ; name=h2048.b128.t40.lstm.f32
rnn_backward dy=f32/40x128x2048 x=f32/40x128x2048 y=f32/40x128x2048 w=[f32/8192x2048] r=[f32/8192x2048] gates=f32/1x40x128x8192 cells=f32/1x40x128x2048 dx=? dw=? dr=? dbw=? dbr=? ; name=h2048.b128.t40.lstm.f32.backward
rnn_forward x=f32/1x16x2048 w=[f32/8192x2048] r=[f32/8192x2048] bw=[f32/8192] br=[f32/8192] ; name=h2048.b16.t1.lstm.f32

# sizes that the list above did not have when kernels were made for it
rnn_forward x=f16/50x16x100 w=[f16/400x100] r=[f16/400x100] bw=[f16/400] br=[f16/400] ; name=h100.b16.t50.lstm.f16
rnn_backward dy=f16/50x16x100 x=f16/50x16x100 y=f16/50x16x100 w=[f16/400x100] r=[f16/400x100] gates=f16/1x50x16x400 cells=f16/1x50x16x100 dx=? dw=? dr=? dbw=? dbr=? ; name=h100.b16.t50.lstm.f16.backward
rnn_forward x=f32/35x20x200 w=[f32/800x200] r=[f32/800x200] bw=[f32/800] br=[f32/800] ; name=h200.b20.t35.lstm.f32
rnn_backward dy=f32/35x20x200 x=f32/35x20x200 y=f32/35x20x200 w=[f32/800x200] r=[f32/800x200] gates=f32/1x35x20x800 cells=f32/1x35x20x200 dx=? dw=? dr=? dbw=? dbr=? ; name=h200.b20.t35.lstm.f32.backward
rnn_forward x=bf16/120x8x320 w=[bf16/960x320] r=[bf16/960x320] bw=[bf16/960] br=[bf16/960] cell=gru ; name=h320.b8.t120.gru.bf16
rnn_backward dy=bf16/120x8x320 x=bf16/120x8x320 y=bf16/120x8x320 w=[bf16/960x320] r=[bf16/960x320] gates=bf16/1x120x8x1280 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h320.b8.t120.gru.bf16.backward
rnn_forward x=f16/70x32x400 w=[f16/1200x400] r=[f16/1200x400] bw=[f16/1200] br=[f16/1200] cell=gru ; name=h400.b32.t70.gru.f16
rnn_backward dy=f16/70x32x400 x=f16/70x32x400 y=f16/70x32x400 w=[f16/1200x400] r=[f16/1200x400] gates=f16/1x70x32x1600 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h400.b32.t70.gru.f16.backward
rnn_forward x=f32/100x16x640 w=[f32/2560x640] r=[f32/2560x640] bw=[f32/2560] br=[f32/2560] ; name=h640.b16.t100.lstm.f32
rnn_backward dy=f32/100x16x640 x=f32/100x16x640 y=f32/100x16x640 w=[f32/2560x640] r=[f32/2560x640] gates=f32/1x100x16x2560 cells=f32/1x100x16x640 dx=? dw=? dr=? dbw=? dbr=? ; name=h640.b16.t100.lstm.f32.backward
rnn_forward x=bf16/60x4x896 w=[bf16/3584x896] r=[bf16/3584x896] bw=[bf16/3584] br=[bf16/3584] ; name=h896.b4.t60.lstm.bf16
rnn_backward dy=bf16/60x4x896 x=bf16/60x4x896 y=bf16/60x4x896 w=[bf16/3584x896] r=[bf16/3584x896] gates=bf16/1x60x4x3584 cells=bf16/1x60x4x896 dx=? dw=? dr=? dbw=? dbr=? ; name=h896.b4.t60.lstm.bf16.backward
rnn_forward x=f16/40x24x1280 w=[f16/3840x1280] r=[f16/3840x1280] bw=[f16/3840] br=[f16/3840] cell=gru ; name=h1280.b24.t40.gru.f16
rnn_backward dy=f16/40x24x1280 x=f16/40x24x1280 y=f16/40x24x1280 w=[f16/3840x1280] r=[f16/3840x1280] gates=f16/1x40x24x5120 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h1280.b24.t40.gru.f16.backward
rnn_forward x=f32/30x64x1536 w=[f32/4608x1536] r=[f32/4608x1536] bw=[f32/4608] br=[f32/4608] cell=gru ; name=h1536.b64.t30.gru.f32
rnn_backward dy=f32/30x64x1536 x=f32/30x64x1536 y=f32/30x64x1536 w=[f32/4608x1536] r=[f32/4608x1536] gates=f32/1x30x64x6144 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h1536.b64.t30.gru.f32.backward
rnn_forward x=bf16/30x64x150 w=[bf16/600x150] r=[bf16/600x150] bw=[bf16/600] br=[bf16/600] ; name=h150.b64.t30.lstm.bf16
rnn_backward dy=bf16/30x64x150 x=bf16/30x64x150 y=bf16/30x64x150 w=[bf16/600x150] r=[bf16/600x150] gates=bf16/1x30x64x600 cells=bf16/1x30x64x150 dx=? dw=? dr=? dbw=? dbr=? ; name=h150.b64.t30.lstm.bf16.backward
rnn_forward x=f16/60x100x256 w=[f16/1024x256] r=[f16/1024x256] bw=[f16/1024] br=[f16/1024] ; name=h256.b100.t60.lstm.f16
rnn_backward dy=f16/60x100x256 x=f16/60x100x256 y=f16/60x100x256 w=[f16/1024x256] r=[f16/1024x256] gates=f16/1x60x100x1024 cells=f16/1x60x100x256 dx=? dw=? dr=? dbw=? dbr=? ; name=h256.b100.t60.lstm.f16.backward
rnn_forward x=f32/200x3x512 w=[f32/1536x512] r=[f32/1536x512] bw=[f32/1536] br=[f32/1536] cell=gru ; name=h512.b3.t200.gru.f32
rnn_backward dy=f32/200x3x512 x=f32/200x3x512 y=f32/200x3x512 w=[f32/1536x512] r=[f32/1536x512] gates=f32/1x200x3x2048 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h512.b3.t200.gru.f32.backward
rnn_forward x=bf16/80x10x1024 w=[bf16/3072x1024] r=[bf16/3072x1024] bw=[bf16/3072] br=[bf16/3072] cell=gru ; name=h1024.b10.t80.gru.bf16
rnn_backward dy=bf16/80x10x1024 x=bf16/80x10x1024 y=bf16/80x10x1024 w=[bf16/3072x1024] r=[bf16/3072x1024] gates=bf16/1x80x10x4096 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h1024.b10.t80.gru.bf16.backward
rnn_forward x=f16/500x2x128 w=[f16/512x128] r=[f16/512x128] bw=[f16/512] br=[f16/512] ; name=h128.b2.t500.lstm.f16
rnn_backward dy=f16/500x2x128 x=f16/500x2x128 y=f16/500x2x128 w=[f16/512x128] r=[f16/512x128] gates=f16/1x500x2x512 cells=f16/1x500x2x128 dx=? dw=? dr=? dbw=? dbr=? ; name=h128.b2.t500.lstm.f16.backward
rnn_forward x=f32/35x20x650 w=[f32/2600x650] r=[f32/2600x650] bw=[f32/2600] br=[f32/2600] ; name=h650.b20.t35.lstm.f32
rnn_backward dy=f32/35x20x650 x=f32/35x20x650 y=f32/35x20x650 w=[f32/2600x650] r=[f32/2600x650] gates=f32/1x35x20x2600 cells=f32/1x35x20x650 dx=? dw=? dr=? dbw=? dbr=? ; name=h650.b20.t35.lstm.f32.backward
rnn_forward x=bf16/64x48x768 w=[bf16/2304x768] r=[bf16/2304x768] bw=[bf16/2304] br=[bf16/2304] cell=gru ; name=h768.b48.t64.gru.bf16
rnn_backward dy=bf16/64x48x768 x=bf16/64x48x768 y=bf16/64x48x768 w=[bf16/2304x768] r=[bf16/2304x768] gates=bf16/1x64x48x3072 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h768.b48.t64.gru.bf16.backward
rnn_forward x=f16/50x8x2048 w=[f16/6144x2048] r=[f16/6144x2048] bw=[f16/6144] br=[f16/6144] cell=gru ; name=h2048.b8.t50.gru.f16
rnn_backward dy=f16/50x8x2048 x=f16/50x8x2048 y=f16/50x8x2048 w=[f16/6144x2048] r=[f16/6144x2048] gates=f16/1x50x8x8192 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h2048.b8.t50.gru.f16.backward
rnn_forward x=f32/50x16x1760 w=[f32/7040x1760] r=[f32/7040x1760] bw=[f32/7040] br=[f32/7040] ; name=h1760.b16.t50.lstm.f32
rnn_backward dy=f32/50x16x1760 x=f32/50x16x1760 y=f32/50x16x1760 w=[f32/7040x1760] r=[f32/7040x1760] gates=f32/1x50x16x7040 cells=f32/1x50x16x1760 dx=? dw=? dr=? dbw=? dbr=? ; name=h1760.b16.t50.lstm.f32.backward
rnn_forward x=bf16/25x32x512 w=[bf16/2048x512] r=[bf16/2048x512] bw=[bf16/2048] br=[bf16/2048] ; name=h512.b32.t25.lstm.bf16
rnn_backward dy=bf16/25x32x512 x=bf16/25x32x512 y=bf16/25x32x512 w=[bf16/2048x512] r=[bf16/2048x512] gates=bf16/1x25x32x2048 cells=bf16/1x25x32x512 dx=? dw=? dr=? dbw=? dbr=? ; name=h512.b32.t25.lstm.bf16.backward
rnn_forward x=f16/25x16x256 w=[f16/768x256] r=[f16/768x256] bw=[f16/768] br=[f16/768] cell=gru ; name=h256.b16.t25.gru.f16
rnn_backward dy=f16/25x16x256 x=f16/25x16x256 y=f16/25x16x256 w=[f16/768x256] r=[f16/768x256] gates=f16/1x25x16x1024 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h256.b16.t25.gru.f16.backward
rnn_forward x=f32/25x128x1024 w=[f32/3072x1024] r=[f32/3072x1024] bw=[f32/3072] br=[f32/3072] cell=gru ; name=h1024.b128.t25.gru.f32
rnn_backward dy=f32/25x128x1024 x=f32/25x128x1024 y=f32/25x128x1024 w=[f32/3072x1024] r=[f32/3072x1024] gates=f32/1x25x128x4096 dx=? dw=? dr=? dbw=? dbr=? cell=gru ; name=h1024.b128.t25.gru.f32.backward
rnn_forward x=f16/100x32x80 w=[f16/1024x80,f16/1024x80,f16/1024x512,f16/1024x512] r=[f16/1024x256,f16/1024x256,f16/1024x256,f16/1024x256] bw=[f16/1024,f16/1024,f16/1024,f16/1024] br=[f16/1024,f16/1024,f16/1024,f16/1024] layers=2 direction=both ; name=bi.h256.l2.f16
rnn_backward dy=f16/100x32x512 x=f16/100x32x80 y=f16/100x32x512 w=[f16/1024x80,f16/1024x80,f16/1024x512,f16/1024x512] r=[f16/1024x256,f16/1024x256,f16/1024x256,f16/1024x256] gates=f16/4x100x32x1024 cells=f16/4x100x32x256 inner=f16/1x100x32x512 dx=? dw=? dr=? dbw=? dbr=? layers=2 direction=both ; name=bi.h256.l2.f16.backward
rnn_forward x=f32/60x16x240 w=[f32/2048x240,f32/2048x240,f32/2048x1024,f32/2048x1024,f32/2048x1024,f32/2048x1024] r=[f32/2048x512,f32/2048x512,f32/2048x512,f32/2048x512,f32/2048x512,f32/2048x512] bw=[f32/2048,f32/2048,f32/2048,f32/2048,f32/2048,f32/2048] br=[f32/2048,f32/2048,f32/2048,f32/2048,f32/2048,f32/2048] layers=3 direction=both ; name=bi.h512.l3.f32
rnn_backward dy=f32/60x16x1024 x=f32/60x16x240 y=f32/60x16x1024 w=[f32/2048x240,f32/2048x240,f32/2048x1024,f32/2048x1024,f32/2048x1024,f32/2048x1024] r=[f32/2048x512,f32/2048x512,f32/2048x512,f32/2048x512,f32/2048x512,f32/2048x512] gates=f32/6x60x16x2048 cells=f32/6x60x16x512 inner=f32/2x60x16x1024 dx=? dw=? dr=? dbw=? dbr=? layers=3 direction=both ; name=bi.h512.l3.f32.backward
rnn_forward x=bf16/80x16x80 w=[bf16/960x80,bf16/960x80,bf16/960x640,bf16/960x640,bf16/960x640,bf16/960x640,bf16/960x640,bf16/960x640] r=[bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320] bw=[bf16/960,bf16/960,bf16/960,bf16/960,bf16/960,bf16/960,bf16/960,bf16/960] br=[bf16/960,bf16/960,bf16/960,bf16/960,bf16/960,bf16/960,bf16/960,bf16/960] cell=gru layers=4 direction=both ; name=bi.h320.l4.gru.bf16
rnn_backward dy=bf16/80x16x640 x=bf16/80x16x80 y=bf16/80x16x640 w=[bf16/960x80,bf16/960x80,bf16/960x640,bf16/960x640,bf16/960x640,bf16/960x640,bf16/960x640,bf16/960x640] r=[bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320,bf16/960x320] gates=bf16/8x80x16x1280 inner=bf16/3x80x16x640 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=4 direction=both ; name=bi.h320.l4.gru.bf16.backward
rnn_forward x=f32/35x20x650 w=[f32/2600x650,f32/2600x650] r=[f32/2600x650,f32/2600x650] bw=[f32/2600,f32/2600] br=[f32/2600,f32/2600] layers=2 ; name=l2.h650.f32
rnn_backward dy=f32/35x20x650 x=f32/35x20x650 y=f32/35x20x650 w=[f32/2600x650,f32/2600x650] r=[f32/2600x650,f32/2600x650] gates=f32/2x35x20x2600 cells=f32/2x35x20x650 inner=f32/1x35x20x650 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=l2.h650.f32.backward
rnn_forward x=f16/40x32x512 w=[f16/4608x512,f16/4608x1152,f16/4608x1152] r=[f16/4608x1152,f16/4608x1152,f16/4608x1152] bw=[f16/4608,f16/4608,f16/4608] br=[f16/4608,f16/4608,f16/4608] layers=3 ; name=l3.h1152.f16
rnn_backward dy=f16/40x32x1152 x=f16/40x32x512 y=f16/40x32x1152 w=[f16/4608x512,f16/4608x1152,f16/4608x1152] r=[f16/4608x1152,f16/4608x1152,f16/4608x1152] gates=f16/3x40x32x4608 cells=f16/3x40x32x1152 inner=f16/2x40x32x1152 dx=? dw=? dr=? dbw=? dbr=? layers=3 ; name=l3.h1152.f16.backward
rnn_forward x=f16/60x32x1312 w=[f16/2400x1312,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800] r=[f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800] bw=[f16/2400,f16/2400,f16/2400,f16/2400,f16/2400] br=[f16/2400,f16/2400,f16/2400,f16/2400,f16/2400] cell=gru layers=5 ; name=l5.h800.gru.f16
rnn_backward dy=f16/60x32x800 x=f16/60x32x1312 y=f16/60x32x800 w=[f16/2400x1312,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800] r=[f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800,f16/2400x800] gates=f16/5x60x32x3200 inner=f16/4x60x32x800 dx=? dw=? dr=? dbw=? dbr=? cell=gru layers=5 ; name=l5.h800.gru.f16.backward
rnn_forward x=f32/35x20x1500 w=[f32/6000x1500,f32/6000x1500] r=[f32/6000x1500,f32/6000x1500] bw=[f32/6000,f32/6000] br=[f32/6000,f32/6000] layers=2 ; name=l2.h1500.f32
rnn_backward dy=f32/35x20x1500 x=f32/35x20x1500 y=f32/35x20x1500 w=[f32/6000x1500,f32/6000x1500] r=[f32/6000x1500,f32/6000x1500] gates=f32/2x35x20x6000 cells=f32/2x35x20x1500 inner=f32/1x35x20x1500 dx=? dw=? dr=? dbw=? dbr=? layers=2 ; name=l2.h1500.f32.backward
rnn_forward x=f32/40x32x300 w=[f32/400x300,f32/400x300] r=[f32/400x100,f32/400x100] bw=[f32/400,f32/400] br=[f32/400,f32/400] direction=both ; name=bi.h100.f32
rnn_backward dy=f32/40x32x200 x=f32/40x32x300 y=f32/40x32x200 w=[f32/400x300,f32/400x300] r=[f32/400x100,f32/400x100] gates=f32/2x40x32x400 cells=f32/2x40x32x100 dx=? dw=? dr=? dbw=? dbr=? direction=both ; name=bi.h100.f32.backward
rnn_forward x=f16/26x64x512 w=[f16/1024x512,f16/1024x512,f16/1024x512,f16/1024x512] r=[f16/1024x256,f16/1024x256,f16/1024x256,f16/1024x256] bw=[f16/1024,f16/1024,f16/1024,f16/1024] br=[f16/1024,f16/1024,f16/1024,f16/1024] layers=2 direction=both ; name=bi.h128.crnn.f16
rnn_backward dy=f16/26x64x512 x=f16/26x64x512 y=f16/26x64x512 w=[f16/1024x512,f16/1024x512,f16/1024x512,f16/1024x512] r=[f16/1024x256,f16/1024x256,f16/1024x256,f16/1024x256] gates=f16/4x26x64x1024 cells=f16/4x26x64x256 inner=f16/1x26x64x512 dx=? dw=? dr=? dbw=? dbr=? layers=2 direction=both ; name=bi.h128.crnn.f16.backward
rnn_forward x=f32/50x32x256 w=[f32/256x256] r=[f32/256x256] bw=[f32/256] br=[f32/256] cell=tanh ; name=tanh.h256.f32
rnn_backward dy=f32/50x32x256 x=f32/50x32x256 y=f32/50x32x256 w=[f32/256x256] r=[f32/256x256] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=tanh.h256.f32.backward
rnn_forward x=f16/30x64x512 w=[f16/512x512] r=[f16/512x512] bw=[f16/512] br=[f16/512] cell=tanh ; name=tanh.h512.f16
rnn_backward dy=f16/30x64x512 x=f16/30x64x512 y=f16/30x64x512 w=[f16/512x512] r=[f16/512x512] dx=? dw=? dr=? dbw=? dbr=? cell=tanh ; name=tanh.h512.f16.backward

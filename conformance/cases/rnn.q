# recurrent networks: cells, directions, layers, lengths, states, what forward leaves to backward.

# one step, one sequence, one number; no step at all, no sequence
rnn_forward x=f32/1x1x1 w=[f32/4x1] r=[f32/4x1] ; as=f64,f16,bf16
rnn_forward x=f32/1x1x1 w=[f32/3x1] r=[f32/3x1] cell=gru
rnn_forward x=f32/1x1x1 w=[f32/1x1] r=[f32/1x1] cell=tanh
rnn_forward x=f32/0x2x3 w=[f32/8x3] r=[f32/8x2] h0=f32/1x2x2 c0=f32/1x2x2 ht=? ct=?
rnn_forward x=f32/3x0x3 w=[f32/8x3] r=[f32/8x2] ht=? ct=?
# no inputs, no units
rnn_backward dy=f32/3x2x7 x=f32/3x2x0 y=f32/3x2x7 w=[f32/7x0] r=[f32/7x7] dw=? dr=? cell=tanh ; r0.fill=signed:0.4
rnn_backward dy=f32/3x2x0 x=f32/3x2x5 y=f32/3x2x0 w=[f32/28x5] r=[f32/28x0] projection=[f32/0x7] gates=f32/1x3x2x28 cells=f32/1x3x2x7 dw=? dr=? dbw=? dprojection=? ; gates.fill=pos
rnn_backward dy=f32/3x2x7 x=f32/3x2x0 y=f32/3x2x7 w=[f32/21x0] r=[f32/21x7] gates=f32/1x3x2x28 dw=? dr=? dbw=? dbr=? cell=gru ; gates.fill=pos r0.fill=signed:0.4

# each cell: with all that it may take and leave
rnn_forward x=f32/3x2x5 w=[f32/28x5] r=[f32/28x7] bw=[f32/28] br=[f32/28] h0=f32/1x2x7 c0=f32/1x2x7 ht=? ct=? gates=? cells=? ; as=f64,f16,bf16 r0.fill=signed:0.4
rnn_forward x=f32/3x2x5 w=[f32/21x5] r=[f32/21x7] bw=[f32/21] br=[f32/21] h0=f32/1x2x7 ht=? gates=? cell=gru ; as=f64,f16,bf16 r0.fill=signed:0.4
rnn_forward x=f32/3x2x5 w=[f32/21x5] r=[f32/21x7] bw=[f32/21] br=[f32/21] h0=f32/1x2x7 ht=? gates=? cell=gru reset=before ; as=f64,f16,bf16 r0.fill=signed:0.4
rnn_forward x=f32/3x2x5 w=[f32/7x5] r=[f32/7x7] bw=[f32/7] br=[f32/7] h0=f32/1x2x7 ht=? cell=tanh ; as=f64,f16,bf16 r0.fill=signed:0.4
rnn_forward x=f32/3x2x5 w=[f32/7x5] r=[f32/7x7] bw=[f32/7] br=[f32/7] h0=f32/1x2x7 ht=? cell=relu ; as=f64,f16,bf16 r0.fill=signed:0.4
# one bias or none; without states
rnn_forward x=f32/3x2x5 w=[f32/28x5] r=[f32/28x7] bw=[f32/28] ; r0.fill=signed:0.4
rnn_forward x=f32/3x2x5 w=[f32/28x5] r=[f32/28x7] br=[f32/28] ; r0.fill=signed:0.4
rnn_forward x=f32/3x2x5 w=[f32/21x5] r=[f32/21x7] br=[f32/21] cell=gru ; r0.fill=signed:0.4
rnn_forward x=f32/3x2x5 w=[f32/21x5] r=[f32/21x7] cell=gru reset=before ; r0.fill=signed:0.4

# lengths in any order, 0, below 0 and beyond the steps; directions
rnn_forward x=f32/4x6x3 w=[f32/20x3] r=[f32/20x5] h0=f32/1x6x5 c0=f32/1x6x5 lengths=i32/6 ht=? ct=? gates=? cells=? ; lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4 as=bf16
rnn_forward x=f32/4x6x3 w=[f32/20x3] r=[f32/20x5] h0=f32/1x6x5 c0=f32/1x6x5 lengths=i64/6 ht=? ct=? direction=backward ; lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4 as=f64
rnn_forward x=f32/4x6x3 w=[f32/15x3] r=[f32/15x5] h0=f32/1x6x5 lengths=i32/6 ht=? gates=? cell=gru ; lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4
rnn_forward x=f32/4x6x3 w=[f32/15x3] r=[f32/15x5] h0=f32/1x6x5 lengths=i32/6 ht=? cell=gru direction=backward ; lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4
rnn_forward x=f32/4x6x3 w=[f32/15x3] r=[f32/15x5] h0=f32/1x6x5 lengths=i32/6 ht=? cell=gru reset=before direction=backward ; lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4
rnn_forward x=f32/4x6x3 w=[f32/5x3,f32/5x3] r=[f32/5x5,f32/5x5] h0=f32/2x6x5 lengths=i32/6 ht=? cell=tanh direction=both ; lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4 r1.fill=signed:0.4
rnn_forward x=f32/5x3x2 w=[f32/12x2] r=[f32/12x3] lengths=i32/3 ht=? ct=? ; lengths.is=0
# beyond a sequence's end x is not read
rnn_forward x=f32/3x1x2 w=[f32/4x2] r=[f32/4x1] lengths=i32/1 ht=? ; lengths.is=1 x.is=0.5,-1,nan,nan,inf,nan

# layers, both directions, the last with a width that no vector has
rnn_forward x=f32/3x2x4 w=[f32/20x4,f32/20x4,f32/20x10,f32/20x10] r=[f32/20x5,f32/20x5,f32/20x5,f32/20x5] bw=[f32/20,f32/20,f32/20,f32/20] br=[f32/20,f32/20,f32/20,f32/20] h0=f32/4x2x5 c0=f32/4x2x5 ht=? ct=? gates=? cells=? inner=? layers=2 direction=both ; r0.fill=signed:0.3 r1.fill=signed:0.3 r2.fill=signed:0.3 r3.fill=signed:0.3 as=f64,f16
rnn_forward x=f32/3x2x4 w=[f32/9x4,f32/9x3,f32/9x3] r=[f32/9x3,f32/9x3,f32/9x3] bw=[f32/9,f32/9,f32/9] lengths=i32/2 ht=? gates=? inner=? layers=3 cell=gru ; lengths.is=3,1 as=f64,bf16
# dropout between layers, not after the last
rnn_forward x=f32/4x3x4 w=[f32/20x4,f32/20x5] r=[f32/20x5,f32/20x5] seed=42 inner=? ht=? layers=2 dropout=0.5 ; r0.fill=signed:0.3 r1.fill=signed:0.3 as=f16
rnn_forward x=f32/4x3x4 w=[f32/5x4,f32/5x5,f32/5x5] r=[f32/5x5,f32/5x5,f32/5x5] seed=i64 offset=i64 layers=3 dropout=0.25 cell=tanh ; r0.fill=signed:0.3 r1.fill=signed:0.3 r2.fill=signed:0.3
rnn_forward x=f32/4x3x4 w=[f32/5x4] r=[f32/5x5] dropout=0.25 cell=tanh
# projection; clip in force
rnn_forward x=f32/3x2x5 w=[f32/28x5] r=[f32/28x3] bw=[f32/28] projection=[f32/3x7] h0=f32/1x2x3 c0=f32/1x2x7 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.4 projection0.fill=signed:0.4 as=f64,bf16
rnn_forward x=f32/3x2x5 w=[f32/8x5,f32/8x5,f32/8x6,f32/8x6] r=[f32/8x3,f32/8x3,f32/8x3,f32/8x3] projection=[f32/3x2,f32/3x2,f32/3x2,f32/3x2] ht=? ct=? inner=? layers=2 direction=both ; as=f16
rnn_forward x=f32/6x2x5 w=[f32/28x5] r=[f32/28x7] c0=f32/1x2x7 ht=? ct=? cells=? gates=? clip=0.25 ; r0.fill=signed:0.4 as=f64,f16
rnn_forward x=f32/6x2x5 w=[f32/28x5] r=[f32/28x7] h0=f32/1x2x7 c0=f32/1x2x7 lengths=i32/2 ct=? clip=0.25 direction=backward ; r0.fill=signed:0.4 lengths.is=6,3

# more steps, more units; numbers of steps, sequences and units around a vector and a tile
rnn_forward x=f32/33x2x3 w=[f32/48x3] r=[f32/48x12] ht=? ct=? ; r0.fill=signed:0.25 as=f64
rnn_forward x=f32/33x2x3 w=[f32/36x3] r=[f32/36x12] ht=? cell=gru ; r0.fill=signed:0.25 as=f64
rnn_forward x=f32/33x1x3 w=[f32/36x3] r=[f32/36x12] ht=? cell=gru reset=before ; r0.fill=signed:0.25
rnn_forward x=f32/33x1x3 w=[f32/12x3] r=[f32/12x12] ht=? cell=tanh ; r0.fill=signed:0.25
rnn_forward x=f32/2x17x40 w=[f32/264x40] r=[f32/264x66] bw=[f32/264] br=[f32/264] h0=f32/1x17x66 gates=? cells=? ; r0.fill=signed:0.12 w0.fill=signed:0.3 as=f16
rnn_forward x=f32/2x17x40 w=[f32/198x40] r=[f32/198x66] bw=[f32/198] br=[f32/198] h0=f32/1x17x66 gates=? cell=gru ; r0.fill=signed:0.12 w0.fill=signed:0.3 as=f16
rnn_forward x=f32/1x1x129 w=[f32/512x129] r=[f32/512x128] bw=[f32/512] br=[f32/512] h0=f32/1x1x128 c0=f32/1x1x128 ; r0.fill=signed:0.1 w0.fill=signed:0.1 as=bf16
rnn_forward x=f32/1x5x37 w=[f32/111x37] r=[f32/111x37] bw=[f32/111] br=[f32/111] h0=f32/1x5x37 ht=? cell=gru ; r0.fill=signed:0.15 w0.fill=signed:0.15 as=f16,bf16
rnn_forward x=f32/2x3x21 w=[f32/37x21] r=[f32/37x37] h0=f32/1x3x37 cell=tanh ; r0.fill=signed:0.15 w0.fill=signed:0.2 as=f16,bf16
rnn_forward x=f32/1x3x64 w=[f32/384x64] r=[f32/384x128] bw=[f32/384] br=[f32/384] h0=f32/1x3x128 cell=gru ; r0.fill=signed:0.1 w0.fill=signed:0.1

# batch first; strides; gates that saturate; what is not finite
rnn_forward x=f32/4x3x5/5:20:1 w=[f32/12x5] r=[f32/12x3] y=f32/4x3x3/3:12:1 ; r0.fill=signed:0.5
rnn_forward x=f32/4x3x5/1:4:12 w=[f32/9x5/t] r=[f32/9x3/t] bw=[f32/9/2] h0=f32/1x3x3/1:1:3 cell=gru gates=f32/1x4x3x12/1:12:48:1 ; r0.fill=signed:0.5
rnn_forward x=f32/4x3x5/5:0:1 w=[f32/12x5/0:1] r=[f32/12x3] bw=[f32/12/0] lengths=i32/3/0 ; r0.fill=signed:0.5 lengths.is=3
rnn_forward x=f32/3x2x4 w=[f32/16x4] r=[f32/16x4] ht=? ct=? gates=? ; fill=far:300,signed:60 r0.fill=signed
rnn_forward x=f32/3x2x4 w=[f32/12x4] r=[f32/12x4] ht=? gates=? cell=gru ; fill=signed:60 r0.fill=signed
rnn_forward x=f32/2x4x3 w=[f32/8x3] r=[f32/8x2] ht=? ct=? ; fill=special r0.fill=signed w0.fill=signed
rnn_forward x=f32/2x4x3 w=[f32/6x3] r=[f32/6x2] ht=? cell=gru ; fill=special r0.fill=signed w0.fill=signed
rnn_forward x=bf16/3x2x5 w=[bf16/28x5] r=[bf16/28x7] bw=[f32/28] br=[f32/28] c0=f32/1x2x7 ct=f32/1x2x7 cells=f32/1x3x2x7 ; r0.fill=signed:0.4
rnn_forward x=bf16/1x2x8 w=[bf16/32x8] r=[bf16/32x8] bw=[f32/32] br=[f32/32] c0=f32/1x2x8 ct=f32/1x2x8 cells=f32/1x1x2x8 ; r0.fill=signed:0.4
rnn_forward x=f16/4x3x8 w=[f16/32x8] r=[f16/32x8] bw=[f32/32] br=[f32/32] c0=f32/1x3x8 ct=f32/1x3x8 gates=f16/1x4x3x32 cells=f32/1x4x3x8 ; r0.fill=signed:0.4
rnn_forward x=f32/1x2x8 w=[f32/32x8] r=[f32/32x8] ; r0.is=nan y.is=nan
rnn_forward x=f32/2x3x16 w=[f32/48x16] r=[f32/48x16] cell=gru ; r0.is=nan y.is=nan

# gradients
rnn_backward dy=f32/1x1x1 x=f32/1x1x1 y=f32/1x1x1 w=[f32/4x1] r=[f32/4x1] gates=f32/1x1x1x4 cells=f32/1x1x1x1 dw=? dr=? dbw=? dbr=? ; gates.fill=pos as=f64,f16,bf16
rnn_backward dy=f32/3x2x7 dht=f32/1x2x7 dct=f32/1x2x7 x=f32/3x2x5 y=f32/3x2x7 w=[f32/28x5] r=[f32/28x7] h0=f32/1x2x7 c0=f32/1x2x7 gates=f32/1x3x2x28 cells=f32/1x3x2x7 dw=? dr=? dbw=? dbr=? dh0=? dc0=? ; gates.fill=pos as=f64,f16,bf16 r0.fill=signed:0.4
rnn_backward dy=f32/3x2x7 dht=f32/1x2x7 x=f32/3x2x5 y=f32/3x2x7 w=[f32/21x5] r=[f32/21x7] h0=f32/1x2x7 gates=f32/1x3x2x28 dw=? dr=? dbw=? dbr=? dh0=? cell=gru ; gates.fill=pos as=f64,f16,bf16 r0.fill=signed:0.4
rnn_backward dy=f32/3x2x7 dht=f32/1x2x7 x=f32/3x2x5 y=f32/3x2x7 w=[f32/21x5] r=[f32/21x7] h0=f32/1x2x7 gates=f32/1x3x2x21 dw=? dr=? dbw=? dbr=? dh0=? cell=gru reset=before ; gates.fill=pos as=f64,f16,bf16 r0.fill=signed:0.4
rnn_backward dy=f32/3x2x7 dht=f32/1x2x7 x=f32/3x2x5 y=f32/3x2x7 w=[f32/7x5] r=[f32/7x7] h0=f32/1x2x7 dw=? dr=? dbw=? dbr=? dh0=? cell=tanh ; as=f64,f16,bf16 r0.fill=signed:0.4
rnn_backward dy=f32/3x2x7 dht=f32/1x2x7 x=f32/3x2x5 y=f32/3x2x7 w=[f32/7x5] r=[f32/7x7] h0=f32/1x2x7 dw=? dr=? dbw=? dbr=? dh0=? cell=relu ; as=f64,f16,bf16 r0.fill=signed:0.4
rnn_backward dy=f32/4x6x5 dht=f32/1x6x5 dct=f32/1x6x5 x=f32/4x6x3 y=f32/4x6x5 w=[f32/20x3] r=[f32/20x5] h0=f32/1x6x5 c0=f32/1x6x5 lengths=i32/6 gates=f32/1x4x6x20 cells=f32/1x4x6x5 dw=? dr=? dbw=? dh0=? dc0=? ; gates.fill=pos lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4
rnn_backward dy=f32/4x6x5 x=f32/4x6x3 y=f32/4x6x5 w=[f32/20x3] r=[f32/20x5] c0=f32/1x6x5 lengths=i64/6 gates=f32/1x4x6x20 cells=f32/1x4x6x5 dw=? dr=? dbr=? dc0=? direction=backward ; gates.fill=pos lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4
rnn_backward dy=f32/4x6x5 dht=f32/1x6x5 x=f32/4x6x3 y=f32/4x6x5 w=[f32/15x3] r=[f32/15x5] h0=f32/1x6x5 lengths=i32/6 gates=f32/1x4x6x20 dw=? dr=? dbw=? dbr=? dh0=? cell=gru direction=backward ; gates.fill=pos lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4
rnn_backward dy=f32/3x2x10 dht=f32/4x2x5 dct=f32/4x2x5 x=f32/3x2x4 y=f32/3x2x10 w=[f32/20x4,f32/20x4,f32/20x10,f32/20x10] r=[f32/20x5,f32/20x5,f32/20x5,f32/20x5] h0=f32/4x2x5 c0=f32/4x2x5 gates=f32/4x3x2x20 cells=f32/4x3x2x5 inner=f32/1x3x2x10 dw=? dr=? dbw=? dbr=? dh0=? dc0=? layers=2 direction=both ; gates.fill=pos r0.fill=signed:0.3 r1.fill=signed:0.3 r2.fill=signed:0.3 r3.fill=signed:0.3
rnn_backward dy=f32/4x3x5 x=f32/4x3x4 y=f32/4x3x5 w=[f32/5x4,f32/5x5] r=[f32/5x5,f32/5x5] inner=f32/1x4x3x5 seed=42 offset=3 dw=? dr=? layers=2 dropout=0.5 cell=tanh ; r0.fill=signed:0.3 r1.fill=signed:0.3 as=f16
rnn_backward dy=f32/4x3x5 x=f32/4x3x4 y=f32/4x3x5 w=[f32/15x4,f32/15x5,f32/15x5] r=[f32/15x5,f32/15x5,f32/15x5] gates=f32/3x4x3x15 inner=f32/2x4x3x5 seed=i64 dw=? dr=? dbw=? layers=3 dropout=0.25 cell=gru reset=before ; gates.fill=pos r0.fill=signed:0.3 r1.fill=signed:0.3 r2.fill=signed:0.3
rnn_backward dy=f32/3x2x3 dht=f32/1x2x3 x=f32/3x2x5 y=f32/3x2x3 w=[f32/28x5] r=[f32/28x3] projection=[f32/3x7] h0=f32/1x2x3 gates=f32/1x3x2x28 cells=f32/1x3x2x7 dw=? dr=? dbw=? dprojection=? dh0=? ; gates.fill=pos r0.fill=signed:0.4 projection0.fill=signed:0.4 as=f64,bf16
rnn_backward dy=f32/6x2x7 dct=f32/1x2x7 x=f32/6x2x5 y=f32/6x2x7 w=[f32/28x5] r=[f32/28x7] gates=f32/1x6x2x28 cells=f32/1x6x2x7 dw=? dr=? clip=0.25 ; gates.fill=pos r0.fill=signed:0.4 as=f64,f16
rnn_backward dy=f32/33x2x12 x=f32/33x2x3 y=f32/33x2x12 w=[f32/48x3] r=[f32/48x12] gates=f32/1x33x2x48 cells=f32/1x33x2x12 dw=? dr=? dbw=? ; r0.fill=signed:0.25 gates.fill=pos as=f64
rnn_backward dy=f32/33x2x12 x=f32/33x2x3 y=f32/33x2x12 w=[f32/36x3] r=[f32/36x12] gates=f32/1x33x2x48 dw=? dr=? dbr=? cell=gru ; r0.fill=signed:0.25 gates.fill=pos as=f64 kind=cpu
rnn_backward dy=f32/33x2x12 x=f32/33x2x3 y=f32/33x2x12 w=[f32/36x3] r=[f32/36x12] gates=f32/1x33x2x48 dw=? dr=? dbr=? cell=gru ; r0.fill=signed:0.15 gates.fill=pos as=f64
rnn_backward dy=f32/2x17x66 x=f32/2x17x40 y=f32/2x17x66 w=[f32/264x40] r=[f32/264x66] gates=f32/1x2x17x264 cells=f32/1x2x17x66 dw=? dr=? dbw=? dbr=? ; r0.fill=signed:0.12 w0.fill=signed:0.3 gates.fill=pos
rnn_backward dy=f32/2x17x66 x=f32/2x17x40 y=f32/2x17x66 w=[f32/198x40] r=[f32/198x66] gates=f32/1x2x17x264 dw=? dr=? dbw=? dbr=? cell=gru ; r0.fill=signed:0.12 w0.fill=signed:0.3 gates.fill=pos
rnn_backward dy=f32/4x3x3/3:12:1 x=f32/4x3x5/1:4:12 y=f32/4x3x3/3:12:1 w=[f32/9x5/t] r=[f32/9x3/t] gates=f32/1x4x3x12/1:12:48:1 dw=[f32/9x5/t] dr=[f32/9x3/t] dbw=[f32/9/2] cell=gru ; gates.fill=pos r0.fill=signed:0.5
rnn_backward dy=bf16/3x2x7 dct=f32/1x2x7 x=bf16/3x2x5 y=bf16/3x2x7 w=[bf16/28x5] r=[bf16/28x7] c0=f32/1x2x7 gates=bf16/1x3x2x28 cells=f32/1x3x2x7 dw=[f32/28x5] dr=[f32/28x7] dbw=[f32/28] dc0=f32/1x2x7 ; gates.fill=pos r0.fill=signed:0.4
rnn_backward dy=bf16/3x2x8 dct=f32/1x2x8 x=bf16/3x2x5 y=bf16/3x2x8 w=[bf16/32x5] r=[bf16/32x8] c0=f32/1x2x8 gates=bf16/1x3x2x32 cells=f32/1x3x2x8 dw=[f32/32x5] dr=[f32/32x8] dbw=[f32/32] dc0=f32/1x2x8 ; gates.fill=pos r0.fill=signed:0.4

# the forward's own results
in x f32/3x2x4
in w f32/12x4
in r f32/12x3
in dy f32/3x2x3
out y = rnn_forward x=x w=[w] r=[r] gates=g cells=c
out dx = rnn_backward dy=dy x=x y=y w=[w] r=[r] gates=g cells=c dw=[dw] dr=[dr]
out dw
out dr

# what PyTorch 2 gives (torch.nn.LSTM, GRU, RNN in double)
rnn_forward x=f32/2x1x1 w=[f32/8x1,f32/8x1,f32/8x4,f32/8x4] r=[f32/8x2,f32/8x2,f32/8x2,f32/8x2] bw=[f32/8,f32/8,f32/8,f32/8] br=[f32/8,f32/8,f32/8,f32/8] h0=f32/4x1x2 c0=f32/4x1x2 ht=? ct=? layers=2 direction=both ; x.is=-0.03125,0.96875 h0.is=-0.59375,-0.625,0.4375,-0.71875,-0.9375,0.5625,-0.125,0.53125 c0.is=-0.21875,0.9375,-0.40625,0.84375,-0.5625,-0.34375,0.78125,0.4375 w0.is=0,-0.21875,0.375,0.03125,0.125,0.1875,0,0.15625 w1.is=0.03125,0.1875,0.3125,0.09375,-0.1875,-0.34375,-0,0.125 w2.is=-0.25,-0.46875,0.40625,-0.03125,0.03125,0.4375,0.375,0.21875,0,0.3125,0.40625,0.1875,-0,-0.125,-0.03125,0.34375,-0.5,-0.21875,-0.09375,0.46875,-0.40625,0.46875,-0.5,-0.21875,-0.09375,0.40625,0.1875,0.125,0.125,0.28125,-0.34375,0.21875 w3.is=-0.1875,-0.34375,0.21875,-0.25,-0.125,0.0625,-0.25,-0.28125,-0.0625,-0.28125,-0.25,-0.25,0.21875,0.46875,0.21875,-0.09375,0.0625,-0.21875,-0.375,-0.1875,0.15625,0.375,0.40625,0.4375,0.46875,-0.1875,0.5,0.25,-0.15625,-0.15625,0.375,-0.4375 r0.is=0.375,0.21875,0.1875,0.3125,-0.0625,0.4375,0.46875,-0.1875,0.40625,-0.1875,-0.3125,-0.5,-0.40625,0.46875,0.34375,-0.34375 r1.is=0.34375,0.09375,0.09375,0.125,-0.46875,-0.03125,0.25,0.3125,0.15625,-0.34375,0.21875,-0.28125,0.40625,0.46875,-0,-0.375 r2.is=0.28125,0.0625,0.1875,-0.40625,-0.4375,0.125,0.21875,-0.28125,-0.28125,0.25,0.46875,-0.0625,0.1875,0.5,-0.1875,0.15625 r3.is=-0.3125,0.4375,0.375,-0.09375,0.09375,0.15625,0.4375,0.0625,0.09375,-0.28125,0.125,-0.375,-0.46875,-0.21875,-0.125,0.46875 bw0.is=-0.40625,0.1875,-0.1875,-0.03125,-0.5,0.0625,-0.25,0.5 bw1.is=0.46875,-0.28125,0.25,-0.4375,-0.34375,-0.15625,-0.09375,-0.40625 bw2.is=0.03125,-0.15625,-0.25,-0.21875,0.125,-0.375,0.375,0.09375 bw3.is=-0.40625,0.46875,0.375,0.28125,-0.1875,0.46875,0.0625,-0.125 br0.is=-0.21875,0.125,0.34375,-0.0625,0.3125,-0.15625,0.25,0.09375 br1.is=0.375,-0.21875,0.03125,-0.46875,0.15625,-0.1875,0.0625,-0.40625 br2.is=-0.03125,0.21875,0,-0.46875,-0.03125,0.03125,0.40625,-0.1875 br3.is=0.34375,0.09375,0.5,-0.21875,0.21875,-0.46875,-0.15625,-0.5 y.is=-0.107382778,-0.167787101,0.13731669,0.0297438969,-0.00480130711,-0.105357096,0.195983304,0.0382666749 y.within=1e-6 ht.is=-0.099950763,0.153595203,-0.144991182,-0.0323747952,-0.00480130711,-0.105357096,0.13731669,0.0297438969 ht.within=1e-6 ct.is=-0.183903505,0.242985989,-0.309214124,-0.107013866,-0.00711489726,-0.215983147,0.352379574,0.0905996154 ct.within=1e-6
rnn_forward x=f32/2x1x2 w=[f32/6x2,f32/6x2] r=[f32/6x2,f32/6x2] bw=[f32/6,f32/6] br=[f32/6,f32/6] h0=f32/2x1x2 ht=? cell=gru layers=2 ; x.is=-0.8125,-0.59375,-0.1875,0.625 h0.is=0.09375,0.09375,0.8125,0.25 w0.is=-0.40625,-0.15625,-0.375,-0.125,-0.1875,0.09375,-0.15625,-0.5,0.09375,0.34375,0.03125,0.21875 w1.is=0.34375,0.28125,0.4375,0.4375,0.40625,-0.125,-0.34375,0.34375,-0.3125,-0.21875,0.0625,-0 r0.is=-0.4375,-0.0625,0.21875,-0.25,0.21875,-0.34375,-0.5,-0.34375,-0.15625,0.09375,0.0625,0.25 r1.is=0.3125,0.21875,-0.125,0.0625,-0,-0.03125,-0.1875,0,-0.28125,0.46875,0.46875,0.375 bw0.is=-0.40625,-0.125,0.25,-0.15625,0.375,0.28125 bw1.is=0.40625,0.4375,-0.15625,0.25,0.46875,-0.15625 br0.is=0.1875,-0.15625,0.28125,-0.46875,-0.375,-0.5 br1.is=0.34375,0.4375,0.1875,0.21875,-0.5,-0.0625 y.is=0.420468528,0.197885167,0.221913794,0.119209592 y.within=1e-6 ht.is=0.147325897,0.128658525,0.221913794,0.119209592 ht.within=1e-6
rnn_forward x=f32/3x1x2 w=[f32/3x2] r=[f32/3x3] bw=[f32/3] br=[f32/3] h0=f32/1x1x3 ht=? cell=tanh ; x.is=0.15625,0.84375,-0.625,0.53125,-0.40625,-0.625 h0.is=-0.28125,0.96875,0.875 w0.is=-0.15625,-0.34375,0.21875,-0.25,0.40625,-0.5 r0.is=0.09375,-0.21875,-0.0625,-0.40625,-0.4375,-0.09375,-0.34375,0.5,0.5 bw0.is=0.21875,0.5,0.03125 br0.is=-0.46875,-0.4375,-0.28125 y.is=-0.694926972,-0.466712753,0.388605342,-0.311589409,0.238363123,-0.515141721,-0.0208337552,0.197833387,-0.133026385 y.within=1e-6 ht.is=-0.0208337552,0.197833387,-0.133026385 ht.within=1e-6
rnn_forward x=f32/3x1x2 w=[f32/3x2,f32/3x2] r=[f32/3x3,f32/3x3] bw=[f32/3,f32/3] br=[f32/3,f32/3] h0=f32/2x1x3 ht=? cell=relu direction=both ; x.is=-0.4375,-0.375,-0.0625,0.96875,0.78125,0.875 h0.is=-0.15625,0.71875,-0,0.6875,-0.34375,-0.5 w0.is=0.0625,0.09375,-0.1875,0.28125,0.15625,0.46875 w1.is=-0.125,0.03125,-0.21875,0.40625,-0.25,-0.5 r0.is=0.34375,-0.4375,-0.25,0.375,-0.46875,-0,-0.28125,0.1875,-0.15625 r1.is=-0.46875,0.46875,0.25,0.15625,0.375,0.3125,0.28125,-0.09375,0.125 bw0.is=0.4375,-0.375,0.4375 bw1.is=0.34375,-0.3125,0.0625 br0.is=-0.34375,0.40625,-0.03125 br1.is=0.1875,-0.21875,0.34375 y.is=0,0,0.340820312,0.307342529,0,0.863250732,0.0954589844,0.315429688,0.797332764,0.569335938,0,0,0,0.0187988281,0.846188545,0,0,0 y.within=1e-6 ht.is=0,0.0187988281,0.846188545,0.307342529,0,0.863250732 ht.within=1e-6
rnn_forward x=f32/3x2x2 w=[f32/12x2] r=[f32/12x2] bw=[f32/12] br=[f32/12] projection=[f32/2x3] h0=f32/1x2x2 c0=f32/1x2x3 ht=? ct=? ; x.is=0.84375,-0.1875,0.40625,-0.15625,-0.84375,-0.875,-0.03125,0.71875,0.71875,-0.40625,0.21875,0.875 h0.is=-0.78125,-1,-1,0.5625 c0.is=-0.8125,-0.84375,0.34375,0.5625,0.46875,-0.90625 w0.is=0.09375,0.125,-0.375,-0.0625,0.09375,-0.28125,0.46875,-0.28125,-0.1875,-0.0625,-0.03125,-0.46875,0.25,0.21875,0.0625,0.28125,0.46875,0,0.1875,0.46875,0.28125,-0.09375,0.40625,0.125 r0.is=-0.1875,-0.4375,-0.46875,-0.125,-0.28125,-0.34375,-0.3125,0.15625,0.4375,0.40625,-0.3125,-0.5,0.1875,-0.375,0.03125,0.15625,-0.4375,-0.25,0.1875,-0.03125,0.21875,0.40625,0.375,-0.375 bw0.is=0.1875,-0.1875,0.03125,0.40625,0.0625,-0.0625,0.0625,-0.3125,-0.25,-0.375,-0.15625,-0.1875 br0.is=0.28125,0.0625,-0,0.03125,-0.3125,0.28125,-0.1875,0.15625,0.03125,-0.03125,-0.4375,-0.15625 projection0.is=0.40625,-0.40625,-0.3125,-0.4375,-0.25,-0.375 y.is=-0.11333741,-0.0267091703,0.040689724,0.00716319734,-0.0170800251,0.0668899459,0.0497420563,0.0175745768,-0.0394940457,0.0627116693,0.0458029658,-0.00481375069 y.within=1e-6 ht.is=-0.0394940457,0.0627116693,0.0458029658,-0.00481375069 ht.within=1e-6 ct.is=-0.400955049,-0.263607989,0.163837982,0.140130079,0.0752992632,-0.191629742 ct.within=1e-6
rnn_forward x=f32/4x3x2 w=[f32/6x2,f32/6x2] r=[f32/6x2,f32/6x2] bw=[f32/6,f32/6] br=[f32/6,f32/6] h0=f32/2x3x2 lengths=i32/3 ht=? cell=gru direction=both ; x.is=-0.46875,0.8125,0.15625,-0.71875,0.46875,-0.375,-0.5625,-0.46875,-0.5625,-0.53125,0.1875,0.5,0.53125,1,0.8125,-0.53125,0.84375,-0.25,0.5625,-0.46875,0.84375,-0.0625,0.34375,0.875 h0.is=-0.21875,0.40625,0.28125,-0.34375,0.03125,0.84375,0.21875,0.71875,0.5,0.46875,-0.4375,-0.21875 lengths.is=4,1,2 w0.is=0.375,0.40625,-0.125,0.09375,0.28125,0.21875,-0.28125,0.09375,-0.125,-0.40625,-0,0.34375 w1.is=0.03125,-0.3125,-0.34375,0.375,0.125,-0.375,0.1875,-0.0625,0.1875,0.25,-0.34375,0.3125 r0.is=0.46875,0.125,0.46875,-0.40625,0.375,0.0625,-0.25,-0.03125,0.0625,0.25,0.15625,-0.375 r1.is=0.5,0.21875,-0.46875,0.09375,-0.1875,0.40625,-0.03125,-0.46875,0.1875,0.28125,0.375,-0.125 bw0.is=0.03125,-0.375,0.15625,-0.15625,-0.28125,-0.28125 bw1.is=0.0625,0.28125,-0.15625,0.25,0.0625,-0.25 br0.is=-0.0625,0.46875,-0.4375,0.375,-0.34375,-0.1875 br1.is=-0.25,0.25,-0.5,-0.375,-0.28125,-0.125 y.is=-0.434091973,0.179355757,0.011392595,-0.0412816366,0.00686098786,-0.415347065,0.148011052,-0.0745096354,-0.12169203,0.152752823,-0.103258843,-0.396501731,-0.234139918,-0.0994869248,-0.102120027,-0.162598493,0,0,0,0,-0.374917742,-0.0188047961,-0.0827093893,-0.273667857,-0.49627828,-0.0700930154,0.248357976,-0.105629222,0,0,0,0,0,0,0,0,-0.39062198,-0.269405411,0.116569649,-0.0372931615,0,0,0,0,0,0,0,0 y.within=1e-6 ht.is=-0.39062198,-0.269405411,0.00686098786,-0.415347065,-0.374917742,-0.0188047961,0.011392595,-0.0412816366,0.148011052,-0.0745096354,-0.103258843,-0.396501731 ht.within=1e-6
rnn_forward x=f32/3x2x1 w=[f32/8x1,f32/8x1] r=[f32/8x2,f32/8x2] h0=f32/2x2x2 c0=f32/2x2x2 lengths=i32/2 ht=? ct=? direction=both ; x.is=0.90625,-0.21875,-0.03125,-0.84375,-0.625,-0.0625 h0.is=0.25,-0.625,0.0625,0.90625,0.9375,0.03125,1,0.96875 c0.is=0.5,0.8125,0.1875,-0.375,0.8125,0.3125,0.21875,-0.03125 lengths.is=1,3 w0.is=-0,0.09375,-0.34375,-0.28125,-0.28125,-0.5,0.125,0.15625 w1.is=-0.46875,0.0625,0.34375,-0.0625,0.3125,0.28125,-0.1875,-0.1875 r0.is=0.3125,-0.34375,0,0.125,-0.0625,0.46875,-0.375,0.15625,0.15625,0.1875,0.46875,-0.375,0.46875,-0.4375,0.34375,0.3125 r1.is=0.0625,-0.4375,-0.40625,-0.1875,-0.40625,-0.25,0.28125,-0.3125,-0.0625,0.375,0.34375,0.28125,-0.40625,0.40625,0.3125,-0.46875 y.is=-0.00566826512,0.132181726,0.165921479,0.196642448,0.0862952558,-0.169458952,-0.0326185753,-0.0170453311,0,0,0,0,0.114654908,0.0282155222,-0.0325185788,0.00248579196,0,0,0,0,0.0699300663,0.0342933296,0.0931223159,0.0812157072 y.within=1e-6 ht.is=-0.00566826512,0.132181726,0.0699300663,0.0342933296,0.165921479,0.196642448,-0.0326185753,-0.0170453311 ht.within=1e-6 ct.is=-0.00909308892,0.266292453,0.138427822,0.0673944855,0.48482495,0.392000804,-0.0635697752,-0.0336046964 ct.within=1e-6

# and its gradients
in x f32/2x1x1
in h0 f32/2x1x2
in c0 f32/2x1x2
in w0 f32/8x1
in w1 f32/8x2
in r0 f32/8x2
in r1 f32/8x2
in bw0 f32/8
in bw1 f32/8
in br0 f32/8
in br1 f32/8
in dy f32/2x1x2
in dht f32/2x1x2
in dct f32/2x1x2
y = rnn_forward x=x w=[w0,w1] r=[r0,r1] bw=[bw0,bw1] br=[br0,br1] h0=h0 c0=c0 gates=g cells=c inner=i layers=2
out dx = rnn_backward dy=dy dht=dht dct=dct x=x y=y w=[w0,w1] r=[r0,r1] h0=h0 c0=c0 gates=g cells=c inner=i dw=[dw0,dw1] dr=[dr0,dr1] dbw=[dbw0,dbw1] dbr=[dbr0,dbr1] dh0=dh0 dc0=dc0 layers=2
out dh0
out dc0
out dw0
out dw1
out dr0
out dr1
out dbw0
out dbw1
out dbr0
out dbr1 ; x.is=-0.0625,-0.96875 h0.is=0.625,-0.40625,-0.15625,0.6875 c0.is=-0.40625,-0.75,-0.4375,0.09375 w0.is=-0.34375,-0.03125,-0.375,-0.25,-0.21875,0.09375,0.09375,-0.1875 w1.is=0.375,-0.34375,0.34375,-0.4375,0.15625,0.09375,-0.28125,0.03125,-0.1875,-0.375,-0.3125,0.4375,-0.46875,0.34375,-0.5,0.25 r0.is=0.25,-0.09375,0.3125,0.28125,-0.03125,-0.40625,-0.1875,0.5,0.09375,0.09375,0.375,-0.40625,0.34375,0.1875,0.0625,0.375 r1.is=0.15625,-0.03125,-0.0625,0.34375,-0.03125,-0.28125,-0.09375,0,0.4375,0.15625,0.1875,-0.03125,0.03125,0.4375,-0.40625,0.4375 bw0.is=-0.25,0.34375,0.28125,0.4375,-0.25,0.28125,0.125,0.40625 bw1.is=-0.5,0.46875,0.4375,0.3125,0.4375,-0.3125,0.0625,0.03125 br0.is=-0.25,0.09375,0.125,0.25,-0.25,0.0625,-0.09375,-0.0625 br1.is=0.375,0.09375,-0.46875,0.21875,0.46875,0.09375,0.21875,-0.3125 dy.is=-0.71875,0.90625,-1,0.125 dht.is=-0.90625,0.125,-0.96875,-0.71875 dct.is=-0.625,-0.59375,0.03125,0.59375 dx.is=-0.000910160972,0.0114839085 dx.within=1e-6 dh0.is=-0.0208472892,-0.0400054516,-0.0264356096,-0.0944887391 dh0.within=1e-6 dc0.is=-0.49788837,-0.0583934982,-0.431659534,0.424077566 dc0.within=1e-6 dw0.is=-0.0762413448,0.0181030518,-0.0958845628,-0.00531957633,0.401711347,0.234119743,-0.0944814282,-0.00419342305 dw0.within=1e-6 dw1.is=0.0762156576,-0.00207666204,0.00860270484,0.000466207629,-0.0175296865,-0.00457668322,-0.00197899146,-0.000673515916,0.0786659943,-0.00283446512,-0.135231142,-0.003850269,0.0410975023,-0.00701741071,0.000137327065,0.00124553531 dw1.within=1e-6 dr0.is=0.0351714511,-0.035819916,-0.00497947416,0.00637365067,0.0241372923,-0.0323444835,0.0101125667,-0.00734085291,-0.0792683635,0.121691532,0.0309103135,0.0221760611,-0.00679322413,-0.0125407683,-0.00394910427,0.00174933855 dr0.within=1e-6 dr1.is=0.0123076157,-0.119822766,0.00375355019,-0.0200667245,-0.0198876544,0.0747542583,-0.00277447207,0.00990375888,0.0103712477,-0.117222476,-0.0472659516,0.282961972,-0.0132662005,-0.00954236067,0.00423813196,-0.0118810724 dr1.within=1e-6 dbw0.is=0.15623996,-0.0321668818,0.16710333,0.022102261,-0.668119903,-0.276610015,0.11993744,-1.15096741e-05 dbw0.within=1e-6 dbw1.is=-0.362723051,-0.0393777175,0.072143758,0.00779446334,-0.375927244,0.626767072,-0.208755366,0.00213524719 dbw1.within=1e-6 dbr0.is=0.15623996,-0.0321668818,0.16710333,0.022102261,-0.668119903,-0.276610015,0.11993744,-1.15096741e-05 dbr0.within=1e-6 dbr1.is=-0.362723051,-0.0393777175,0.072143758,0.00779446334,-0.375927244,0.626767072,-0.208755366,0.00213524719 dbr1.within=1e-6

in x f32/2x2x1
in h0 f32/2x2x1
in c0 f32/2x2x1
in w0 f32/4x1
in w1 f32/4x1
in r0 f32/4x1
in r1 f32/4x1
in bw0 f32/4
in bw1 f32/4
in br0 f32/4
in br1 f32/4
in dy f32/2x2x2
in dht f32/2x2x1
in dct f32/2x2x1
in lengths i32/2
y = rnn_forward x=x w=[w0,w1] r=[r0,r1] bw=[bw0,bw1] br=[br0,br1] h0=h0 c0=c0 lengths=lengths gates=g cells=c direction=both
out dx = rnn_backward dy=dy dht=dht dct=dct x=x y=y w=[w0,w1] r=[r0,r1] h0=h0 c0=c0 lengths=lengths gates=g cells=c dw=[dw0,dw1] dr=[dr0,dr1] dbw=[dbw0,dbw1] dbr=[dbr0,dbr1] dh0=dh0 dc0=dc0 direction=both
out dh0
out dc0
out dw0
out dw1
out dr0
out dr1
out dbw0
out dbw1
out dbr0
out dbr1 ; x.is=-0.0625,-0.21875,-0.8125,0.8125 h0.is=-0.59375,-0.0625,0.5,-1 c0.is=-0.78125,0.21875,-0.78125,-0.28125 w0.is=-0.09375,-0.25,-0.3125,-0.03125 w1.is=-0.4375,-0.3125,0.3125,0.46875 r0.is=0.4375,0.25,0.40625,-0.09375 r1.is=0.09375,-0.25,0.4375,-0.46875 bw0.is=-0.40625,0.34375,-0.09375,-0.03125 bw1.is=-0.3125,0.28125,0.03125,-0.1875 br0.is=0.34375,-0.0625,-0.25,0.03125 br1.is=0.25,0.3125,0.21875,-0.375 dy.is=0.78125,-0.125,-0.84375,0.25,0.09375,-0.75,0.6875,-1 dht.is=-0.1875,0.28125,-0.21875,-0.6875 dct.is=-0.96875,0.8125,-0.375,0.84375 lengths.is=1,2 dx.is=-0.0267331693,0.0648474077,0,-0.0977426349 dx.within=1e-6 dh0.is=-0.00980036047,0.0448099791,-0.120941738,-0.0169220253 dh0.within=1e-6 dc0.is=-0.407994625,0.162364758,-0.292663676,-0.00688196121 dc0.within=1e-6 dw0.is=-0.138388846,-0.0161240125,0.326123,-0.0448646958 dw0.within=1e-6 dw1.is=-0.00239278672,0.000386571398,-0.0660348563,0.0240765267 dw1.within=1e-6 dr0.is=-0.0538339001,-0.0885190688,0.129595252,0.0497396368 dr0.within=1e-6 dr1.is=-0.0268708732,0.0449130174,-0.124019309,-0.0225812623 dr1.within=1e-6 dbw0.is=-0.0941163725,0.158032892,0.303934551,-0.141590807 dbw0.within=1e-6 dbw1.is=-0.0253697942,0.0635964802,0.143507643,0.0544847524 dbw1.within=1e-6 dbr0.is=-0.0941163725,0.158032892,0.303934551,-0.141590807 dbr0.within=1e-6 dbr1.is=-0.0253697942,0.0635964802,0.143507643,0.0544847524 dbr1.within=1e-6

in x f32/3x1x2
in h0 f32/1x1x2
in w0 f32/6x2
in r0 f32/6x2
in bw0 f32/6
in br0 f32/6
in dy f32/3x1x2
in dht f32/1x1x2
y = rnn_forward x=x w=[w0] r=[r0] bw=[bw0] br=[br0] h0=h0 gates=g cell=gru
out dx = rnn_backward dy=dy dht=dht x=x y=y w=[w0] r=[r0] h0=h0 gates=g dw=[dw0] dr=[dr0] dbw=[dbw0] dbr=[dbr0] dh0=dh0 cell=gru
out dh0
out dw0
out dr0
out dbw0
out dbr0 ; x.is=0,-0.6875,0.09375,0.84375,0.9375,0.59375 h0.is=-0.1875,-0.0625 w0.is=0.0625,-0.28125,0.3125,-0.5,0.25,0.40625,-0.4375,0.15625,0.25,0.3125,0.1875,0.1875 r0.is=-0.5,-0.3125,-0.3125,0.34375,0.28125,0.125,0.25,-0.0625,-0.3125,0.375,0.09375,0.375 bw0.is=-0.5,0.40625,0.03125,-0.46875,0.46875,0.125 br0.is=-0.46875,-0.25,-0.0625,0.3125,0.0625,-0.375 dy.is=-0.6875,-0.84375,0.65625,-0.125,-0.1875,-0.53125 dht.is=0.25,0.46875 dx.is=-0.0940028179,-0.163754872,0.00295279267,-0.000141294863,-0.00583753757,-0.00626022469 dx.within=1e-6 dh0.is=-0.157126539,-0.508061918 dh0.within=1e-6 dw0.is=-0.000179002306,0.00179551791,0.00371790941,-0.0243272262,-0.0139167534,-0.105871312,0.0046444904,0.0427367497,0.0270360963,0.273787452,-0.0405034527,0.255256797 dw0.within=1e-6 dr0.is=0.000611901759,0.000415800167,-0.00731307809,-0.0045475241,-0.016800131,0.0140357797,0.0106176365,0.000669165085,0.0156936136,-0.00339118177,0.0502659927,0.0258885562 dr0.within=1e-6 dbw0.is=-0.00494244149,0.0595666577,-0.0607190039,-0.0294742965,0.00668518683,-0.61109222 dbw0.within=1e-6 dbr0.is=-0.00494244149,0.0595666577,-0.0607190039,-0.0294742965,-0.0174418688,-0.364919055 dbr0.within=1e-6

# units in pieces of 16 bytes: more than a block has, than a warp's share; sequences beyond a tile; both directions at once; lengths
rnn_forward x=f32/5x3x16 w=[f32/64x16] r=[f32/64x16] bw=[f32/64] br=[f32/64] h0=f32/1x3x16 c0=f32/1x3x16 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.25 as=f16,bf16
rnn_forward x=f32/3x9x8 w=[f32/72x8] r=[f32/72x24] bw=[f32/72] br=[f32/72] h0=f32/1x9x24 ht=? gates=? cell=gru ; r0.fill=signed:0.2 as=f16,bf16
rnn_forward x=f32/4x6x8 w=[f32/32x8,f32/32x8,f32/32x16,f32/32x16] r=[f32/32x8,f32/32x8,f32/32x8,f32/32x8] br=[f32/32,f32/32,f32/32,f32/32] h0=f32/4x6x8 c0=f32/4x6x8 lengths=i32/6 ht=? ct=? gates=? cells=? inner=? layers=2 direction=both clip=0.5 ; lengths.is=2,4,0,-1,9,1 r0.fill=signed:0.4 r1.fill=signed:0.4 as=f16
rnn_forward x=f32/3x2x8 w=[f32/40x8] r=[f32/40x40] ht=? cell=tanh direction=backward ; r0.fill=signed:0.2 as=f16
rnn_forward x=f32/3x2x8 w=[f32/40x8] r=[f32/40x40] ht=? cell=relu ; r0.fill=signed:0.2 as=bf16
rnn_forward x=f32/2x2x8 w=[f32/1056x8] r=[f32/1056x264] ; r0.fill=signed:0.06 as=f16
rnn_backward dy=f32/5x3x16 dht=f32/1x3x16 dct=f32/1x3x16 x=f32/5x3x16 y=f32/5x3x16 w=[f32/64x16] r=[f32/64x16] h0=f32/1x3x16 c0=f32/1x3x16 gates=f32/1x5x3x64 cells=f32/1x5x3x16 dw=? dr=? dbw=? dbr=? dh0=? dc0=? ; gates.fill=pos r0.fill=signed:0.25 as=f16,bf16
rnn_backward dy=f32/3x9x24 x=f32/3x9x8 y=f32/3x9x24 w=[f32/72x8] r=[f32/72x24] gates=f32/1x3x9x96 dw=? dr=? dbw=? dbr=? dh0=? h0=f32/1x9x24 cell=gru ; gates.fill=pos r0.fill=signed:0.2 as=f16,bf16
rnn_backward dy=f32/4x6x16 dht=f32/4x6x8 x=f32/4x6x8 y=f32/4x6x16 w=[f32/32x8,f32/32x8,f32/32x16,f32/32x16] r=[f32/32x8,f32/32x8,f32/32x8,f32/32x8] h0=f32/4x6x8 c0=f32/4x6x8 lengths=i32/6 gates=f32/4x4x6x32 cells=f32/4x4x6x8 inner=f32/1x4x6x16 dw=? dr=? dh0=? dc0=? layers=2 direction=both ; lengths.is=2,4,0,-1,9,1 gates.fill=pos r0.fill=signed:0.4 r1.fill=signed:0.4 as=f16
rnn_backward dy=f32/3x2x40 x=f32/3x2x8 y=f32/3x2x40 w=[f32/40x8] r=[f32/40x40] dr=? dh0=? h0=f32/1x2x40 cell=tanh direction=backward ; r0.fill=signed:0.2 as=f16
# more than a thousand units: weights beyond the registers, one and two tiles of sequences
rnn_forward x=f16/2x9x8 w=[f16/4608x8] r=[f16/4608x1152] ht=? ; r0.fill=signed:0.03
rnn_forward x=f16/2x2x8 w=[f16/6144x8] r=[f16/6144x1536] ; r0.fill=signed:0.02
rnn_forward x=bf16/2x2x8 w=[bf16/6144x8] r=[bf16/6144x2048] cell=gru ; r0.fill=signed:0.02
rnn_forward x=f16/2x2x8 w=[f16/8192x8] r=[f16/8192x2048] ; r0.fill=signed:0.02
rnn_backward dy=f16/2x2x1152 x=f16/2x2x8 y=f16/2x2x1152 w=[f16/4608x8] r=[f16/4608x1152] h0=f16/1x2x1152 c0=f16/1x2x1152 gates=f16/1x2x2x4608 cells=f16/1x2x2x1152 dw=? dbw=? dh0=? dc0=? ; gates.fill=pos r0.fill=signed:0.03

# one step, as a network generates: rows in pieces of 16 bytes, few sequences, more than are taken at once; layers, directions, no state
rnn_forward x=f32/1x1x16 w=[f32/32x16] r=[f32/32x8] bw=[f32/32] br=[f32/32] h0=f32/1x1x8 c0=f32/1x1x8 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.4 as=f16,bf16
rnn_forward x=f32/1x3x8 w=[f32/48x8,f32/48x16] r=[f32/48x16,f32/48x16] bw=[f32/48,f32/48] h0=f32/2x3x16 seed=7 ht=? gates=? inner=? cell=gru layers=2 dropout=0.5 ; r0.fill=signed:0.25 r1.fill=signed:0.25 as=f16
rnn_forward x=f32/1x11x8 w=[f32/32x8,f32/32x8] r=[f32/32x8,f32/32x8] br=[f32/32,f32/32] h0=f32/2x11x8 c0=f32/2x11x8 lengths=i32/11 ht=? ct=? direction=both clip=0.5 ; lengths.is=1,0,1,1,5,-1,1,1,1,1,0 r0.fill=signed:0.4 as=f16
rnn_forward x=f32/1x2x264 w=[f32/16x264] r=[f32/16x16] bw=[f32/16] br=[f32/16] ht=? cell=relu ; w0.fill=signed:0.1 as=bf16
rnn_forward x=f32/1x64x16 w=[f32/96x16] r=[f32/96x24] bw=[f32/96] br=[f32/96] h0=f32/1x64x24 c0=f32/1x64x24 ht=? ; r0.fill=signed:0.2 as=f16
rnn_forward x=f32/1x33x8 w=[f32/48x8] r=[f32/48x16] br=[f32/48] h0=f32/1x33x16 lengths=i32/33/0 gates=? cell=gru ; lengths.is=1 r0.fill=signed:0.25 as=bf16
# rows of w longer than those of r and than what is asked for at once, and the other way round; r that is not finite where there is no state
rnn_forward x=f32/1x1x2056 w=[f32/24x2056] r=[f32/24x8] bw=[f32/24] h0=f32/1x1x8 ht=? cell=gru ; w0.fill=signed:0.02 as=f16
rnn_forward x=f32/1x5x1608 w=[f32/72x1608] r=[f32/72x24] bw=[f32/72] br=[f32/72] h0=f32/1x5x24 ht=? gates=? cell=gru ; w0.fill=signed:0.02 as=f16,bf16
rnn_forward x=f32/1x3x8 w=[f32/1056x8] r=[f32/1056x264] br=[f32/1056] h0=f32/1x3x264 c0=f32/1x3x264 ct=? ; r0.fill=signed:0.1 as=bf16
rnn_forward x=f32/1x19x536 w=[f32/32x536] r=[f32/32x8] h0=f32/1x19x8 lengths=i32/19 gates=? cells=? ; lengths.is=1,0,1,1,1,1,1,1,1,0,1,1,1,1,1,1,1,0,1 w0.fill=signed:0.05 as=f16,bf16
rnn_forward x=f32/1x17x8 w=[f32/24x8] r=[f32/24x8] cell=gru ; r0.is=inf y.is=nan as=f16
rnn_forward x=f32/1x1x8 w=[f32/8x8] r=[f32/8x8] cell=tanh ; r0.is=nan y.is=nan as=f16,bf16

# few units and more steps: one block, clusters of 2 to 8, units and sequences that do not fill them, weights beyond the registers, lengths
rnn_forward x=f16/33x9x16 w=[f16/256x16] r=[f16/256x64] bw=[f16/256] br=[f16/256] h0=f16/1x9x64 c0=f16/1x9x64 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.03 w0.fill=signed:0.1 as=bf16
rnn_forward x=f16/33x9x16 w=[f16/512x16] r=[f16/512x128] bw=[f16/512] br=[f16/512] h0=f16/1x9x128 c0=f16/1x9x128 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.03 w0.fill=signed:0.1 as=bf16
rnn_forward x=f16/5x3x8 w=[f16/390x8] r=[f16/390x130/t] br=[f16/390] h0=f16/1x3x130 lengths=i32/3 ht=? gates=? cell=gru ; lengths.is=5,0,2 r0.fill=signed:0.08 as=bf16
rnn_forward x=f16/4x21x8 w=[f16/800x8,f16/800x8] r=[f16/800x200,f16/800x200] bw=[f16/800,f16/800] lengths=i32/21/0 ht=? ct=? cells=? direction=both ; lengths.is=3 r0.fill=signed:0.08 r1.fill=signed:0.08
rnn_forward x=f16/3x2x8 w=[f16/321x8] r=[f16/321x321] ht=? cell=tanh ; r0.fill=signed:0.05 as=bf16
rnn_forward x=f16/2x9x8 w=[f16/792x8,f16/792x264] r=[f16/792x264,f16/792x264] bw=[f16/792,f16/792] br=[f16/792,f16/792] ht=? gates=? inner=? seed=5 cell=gru layers=2 dropout=0.25 ; r0.fill=signed:0.06 r1.fill=signed:0.06 w1.fill=signed:0.06

# gradients of weights without a first state: what forward gave, a step apart in either direction; both biases
rnn_backward dy=f32/5x3x16 x=f32/5x3x8 y=f32/5x3x16 w=[f32/32x8,f32/32x8,f32/32x16,f32/32x16] r=[f32/32x8,f32/32x8,f32/32x8,f32/32x8] gates=f32/4x5x3x32 cells=f32/4x5x3x8 inner=f32/1x5x3x16 dw=? dr=? dbw=? dbr=? layers=2 direction=both ; gates.fill=pos r0.fill=signed:0.3 r1.fill=signed:0.3 r2.fill=signed:0.3 as=f16
rnn_backward dy=f32/6x1x24 x=f32/6x1x8 y=f32/6x1x24 w=[f32/72x8] r=[f32/72x24] gates=f32/1x6x1x96 dr=? dbr=? cell=gru direction=backward ; gates.fill=pos r0.fill=signed:0.2 as=bf16

# f32 of few units by a cluster: one block, 3 and 8 of them, rows that do not begin aligned, lengths
rnn_forward x=f32/33x9x8 w=[f32/128x8] r=[f32/128x32] bw=[f32/128] br=[f32/128] h0=f32/1x9x32 c0=f32/1x9x32 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.15 w0.fill=signed:0.2
rnn_forward x=f32/5x3x8 w=[f32/249x8,f32/249x8] r=[f32/249x83,f32/249x83] br=[f32/249,f32/249] h0=f32/2x3x83 lengths=i32/3 ht=? gates=? cell=gru direction=both ; lengths.is=5,0,2 r0.fill=signed:0.1 r1.fill=signed:0.1
rnn_forward x=f32/3x9x8 w=[f32/1000x8] r=[f32/1000x250] bw=[f32/1000] ht=? ct=? ; r0.fill=signed:0.06

# a clip where forward leaves nothing for a gradient
rnn_forward x=f32/6x2x5 w=[f32/28x5] r=[f32/28x7] c0=f32/1x2x7 ht=? ct=? clip=0.25 ; as=f64,f16

# layers one step behind another: more than go at once, units that fill no chunk, more inputs than units, sequences beyond a share, lengths,
# dropout in between, either direction
rnn_forward x=f16/7x5x24 w=[f16/256x24,f16/256x64,f16/256x64] r=[f16/256x64,f16/256x64,f16/256x64] bw=[f16/256,f16/256,f16/256] br=[f16/256,f16/256,f16/256] h0=f16/3x5x64 c0=f16/3x5x64 ht=? ct=? gates=? cells=? inner=? layers=3 ; r0.fill=signed:0.05 r1.fill=signed:0.05 r2.fill=signed:0.05 w0.fill=signed:0.1 w1.fill=signed:0.1 w2.fill=signed:0.1 as=bf16
rnn_forward x=f16/5x66x40 w=[f16/192x40,f16/192x64] r=[f16/192x64,f16/192x64] bw=[f16/192,f16/192] br=[f16/192,f16/192] h0=f16/2x66x64 lengths=i32/66/0 seed=5 ht=? gates=? inner=? cell=gru layers=2 dropout=0.25 direction=backward ; lengths.is=4 r0.fill=signed:0.05 r1.fill=signed:0.05 w0.fill=signed:0.1 w1.fill=signed:0.1
rnn_forward x=f16/4x6x40 w=[f16/96x40,f16/96x24] r=[f16/96x24/t,f16/96x24] bw=[f16/96,f16/96] c0=f16/2x6x24 lengths=i32/6 ht=? ct=? cells=? inner=? layers=2 clip=0.5 ; lengths.is=4,0,2,1,3,9 r0.fill=signed:0.2 r1.fill=signed:0.2
rnn_forward x=f16/3x2x200/200:600:1 w=[f16/544x200,f16/544x136] r=[f16/544x136,f16/544x136] br=[f16/544,f16/544] gates=? layers=2 ; r0.fill=signed:0.06 r1.fill=signed:0.06 w0.fill=signed:0.06 w1.fill=signed:0.06
rnn_forward x=f16/5x3x9 w=[f16/13x9,f16/13x13,f16/13x13] r=[f16/13x13,f16/13x13,f16/13x13] ht=? cell=relu layers=3 ; r0.fill=signed:0.2 r1.fill=signed:0.2 r2.fill=signed:0.2 as=bf16
rnn_backward dy=f16/7x5x64 dht=f16/3x5x64 dct=f16/3x5x64 x=f16/7x5x24 y=f16/7x5x64 w=[f16/256x24,f16/256x64,f16/256x64] r=[f16/256x64,f16/256x64,f16/256x64] h0=f16/3x5x64 c0=f16/3x5x64 gates=f16/3x7x5x256 cells=f16/3x7x5x64 inner=f16/2x7x5x64 dw=? dr=? dbw=? dbr=? dh0=? dc0=? layers=3 ; gates.fill=pos r0.fill=signed:0.05 r1.fill=signed:0.05 r2.fill=signed:0.05 w1.fill=signed:0.05 w2.fill=signed:0.05 as=bf16
rnn_backward dy=f16/4x66x24 dht=f16/2x66x24 x=f16/4x66x16 y=f16/4x66x24 w=[f16/72x16,f16/72x24] r=[f16/72x24,f16/72x24/t] h0=f16/2x66x24 lengths=i32/66/0 gates=f16/2x4x66x96 inner=f16/1x4x66x24 dw=? dr=? dbw=? dbr=? dh0=? cell=gru layers=2 direction=backward ; lengths.is=3 gates.fill=pos r0.fill=signed:0.1 r1.fill=signed:0.1 w1.fill=signed:0.1
rnn_backward dy=f16/4x6x24 dct=f16/2x6x24 x=f16/4x6x16 y=f16/4x6x24 w=[f16/96x16,f16/96x24] r=[f16/96x24,f16/96x24] c0=f16/2x6x24 lengths=i32/6 gates=f16/2x4x6x96 cells=f16/2x4x6x24 inner=f16/1x4x6x24 dr=? dc0=? dh0=? layers=2 clip=0.5 ; lengths.is=4,0,2,1,3,9 gates.fill=pos r0.fill=signed:0.1 r1.fill=signed:0.1 w1.fill=signed:0.1
rnn_backward dy=f16/3x2x136 x=f16/3x2x8 y=f16/3x2x136 w=[f16/544x8,f16/544x136] r=[f16/544x136,f16/544x136] gates=f16/2x3x2x544 cells=f16/2x3x2x136 inner=f16/1x3x2x136 dw=? dr=? layers=2 ; gates.fill=pos r0.fill=signed:0.03 r1.fill=signed:0.03 w1.fill=signed:0.03
rnn_backward dy=f16/3x2x13 x=f16/3x2x8 y=f16/3x2x13 w=[f16/13x8,f16/13x13] r=[f16/13x13,f16/13x13] inner=f16/1x3x2x13 dr=? dh0=? h0=f16/2x2x13 cell=tanh layers=2 ; r0.fill=signed:0.2 r1.fill=signed:0.2 as=bf16
# gradients of both directions at once, a layer at a time
rnn_backward dy=f16/3x3x16 dht=f16/2x3x8 dct=f16/2x3x8 x=f16/3x3x8 y=f16/3x3x16 w=[f16/32x8,f16/32x8] r=[f16/32x8,f16/32x8] h0=f16/2x3x8 c0=f16/2x3x8 lengths=i32/3 gates=f16/2x3x3x32 cells=f16/2x3x3x8 dx=? dw=? dr=? dh0=? dc0=? direction=both ; lengths.is=3,1,2 gates.fill=pos r0.fill=signed:0.25 r1.fill=signed:0.25 w0.fill=signed:0.2 w1.fill=signed:0.2
rnn_backward dy=bf16/2x2x16 x=bf16/2x2x8 y=bf16/2x2x16 w=[bf16/24x8,bf16/24x8,bf16/24x16,bf16/24x16] r=[bf16/24x8,bf16/24x8,bf16/24x8,bf16/24x8] h0=bf16/4x2x8 gates=bf16/4x2x2x32 inner=bf16/1x2x2x16 dx=? dr=? dh0=? cell=gru layers=2 direction=both ; gates.fill=pos r0.fill=signed:0.25 r1.fill=signed:0.25 r2.fill=signed:0.25 r3.fill=signed:0.25
# a gru's slope of n by x beyond f16, that by h within it
rnn_backward dy=f16/2x1x1 dht=f16/1x1x1 x=f16/2x1x1 y=f16/2x1x1 w=[f16/3x1] r=[f16/3x1] h0=f16/1x1x1 gates=f16/1x2x1x4 dh0=? cell=gru ; dy.is=0,60000 dht.is=60000 y.is=0,0 h0.is=0 gates.is=0.5,0.5,0,0.5,0.5,0,0,0 w0.is=0.5,0.5,1 r0.is=0.5,0.5,0.25 dh0.is=8904 dh0.within=0.01

# projection and the reset before the product, by blocks: units and states around a vector and a block, sequences beyond a group of 72, layers,
# directions, lengths, dropout in between, other strides, a clip; more columns than stay in a cache at once
rnn_forward x=f32/2x17x9 w=[f32/264x9] r=[f32/264x37] bw=[f32/264] br=[f32/264] projection=[f32/37x66] h0=f32/1x17x37 c0=f32/1x17x66 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.12 projection0.fill=signed:0.12 as=f64,f16
rnn_forward x=f32/3x5x4 w=[f32/68x4,f32/68x4,f32/68x18,f32/68x18] r=[f32/68x9,f32/68x9,f32/68x9/t,f32/68x9] projection=[f32/9x17,f32/9x17/t,f32/9x17,f32/9x17] lengths=i32/5 seed=3 ht=? ct=? gates=? cells=? inner=? layers=2 direction=both dropout=0.25 clip=0.5 ; lengths.is=3,0,1,2,7 r0.fill=signed:0.2 r1.fill=signed:0.2 r2.fill=signed:0.2 r3.fill=signed:0.2 as=f64,bf16
rnn_forward x=f32/2x17x9 w=[f32/198x9] r=[f32/198x66] bw=[f32/198] br=[f32/198] h0=f32/1x17x66 ht=? gates=? cell=gru reset=before ; r0.fill=signed:0.12 as=f64,f16
rnn_forward x=f32/3x5x4 w=[f32/51x4,f32/51x4,f32/51x34,f32/51x34] r=[f32/51x17,f32/51x17,f32/51x17/t,f32/51x17] bw=[f32/51,f32/51,f32/51,f32/51] lengths=i32/5 ht=? gates=? inner=? layers=2 direction=both cell=gru reset=before ; lengths.is=3,0,1,2,7 r0.fill=signed:0.2 r1.fill=signed:0.2 r2.fill=signed:0.2 r3.fill=signed:0.2 as=f64,bf16
rnn_forward x=f32/2x75x3 w=[f32/36x3] r=[f32/36x9] projection=[f32/9x9] ht=? ct=? ; r0.fill=signed:0.3
rnn_forward x=f32/2x75x3 w=[f32/27x3] r=[f32/27x9] ht=? gates=? cell=gru reset=before ; r0.fill=signed:0.3
rnn_forward x=f32/2x75x3 w=[f32/27x3] r=[f32/27x9] ht=? gates=? cell=gru ; r0.fill=signed:0.3 as=f64
rnn_forward x=f32/1x5x170 w=[f32/680x170] r=[f32/680x170] h0=f32/1x5x170 c0=f32/1x5x170 ; r0.fill=signed:0.08 w0.fill=signed:0.08 as=f64,f16
rnn_forward x=f64/65x1x3 w=[f64/36x3] r=[f64/36x9] ct=? ; r0.fill=signed:0.3
rnn_backward dy=f32/2x17x37 dht=f32/1x17x37 dct=f32/1x17x66 x=f32/2x17x9 y=f32/2x17x37 w=[f32/264x9] r=[f32/264x37] projection=[f32/37x66] h0=f32/1x17x37 c0=f32/1x17x66 gates=f32/1x2x17x264 cells=f32/1x2x17x66 dw=? dr=? dbw=? dbr=? dprojection=? dh0=? dc0=? ; gates.fill=pos r0.fill=signed:0.12 projection0.fill=signed:0.12 as=f64,f16
rnn_backward dy=f32/3x5x18 dht=f32/4x5x9 x=f32/3x5x4 y=f32/3x5x18 w=[f32/68x4,f32/68x4,f32/68x18,f32/68x18] r=[f32/68x9,f32/68x9,f32/68x9/t,f32/68x9] projection=[f32/9x17,f32/9x17/t,f32/9x17,f32/9x17] lengths=i32/5 seed=3 gates=f32/4x3x5x68 cells=f32/4x3x5x17 inner=f32/1x3x5x18 dw=? dr=? dbw=? dprojection=? dh0=? h0=f32/4x5x9 layers=2 direction=both dropout=0.25 clip=0.5 ; lengths.is=3,0,1,2,7 gates.fill=pos r0.fill=signed:0.2 r1.fill=signed:0.2 r2.fill=signed:0.2 r3.fill=signed:0.2 as=f64,bf16
rnn_backward dy=f32/2x17x66 dht=f32/1x17x66 x=f32/2x17x9 y=f32/2x17x66 w=[f32/198x9] r=[f32/198x66] h0=f32/1x17x66 gates=f32/1x2x17x198 dw=? dr=? dbw=? dbr=? dh0=? cell=gru reset=before ; gates.fill=pos r0.fill=signed:0.12 as=f64,f16
rnn_backward dy=f32/3x5x34 dht=f32/4x5x17 x=f32/3x5x4 y=f32/3x5x34 w=[f32/51x4,f32/51x4,f32/51x34,f32/51x34] r=[f32/51x17,f32/51x17,f32/51x17/t,f32/51x17] lengths=i32/5 gates=f32/4x3x5x51 inner=f32/1x3x5x34 dw=? dr=? dbw=? dbr=? dh0=? h0=f32/4x5x17 layers=2 direction=both cell=gru reset=before ; lengths.is=3,0,1,2,7 gates.fill=pos r0.fill=signed:0.2 r1.fill=signed:0.2 r2.fill=signed:0.2 r3.fill=signed:0.2 as=f64,bf16
rnn_backward dy=f32/2x75x9 x=f32/2x75x3 y=f32/2x75x9 w=[f32/36x3] r=[f32/36x9] projection=[f32/9x9] gates=f32/1x2x75x36 cells=f32/1x2x75x9 dr=? dprojection=? ; gates.fill=pos r0.fill=signed:0.3
rnn_backward dy=f32/2x75x9 x=f32/2x75x3 y=f32/2x75x9 w=[f32/27x3] r=[f32/27x9] gates=f32/1x2x75x27 dr=? cell=gru reset=before ; gates.fill=pos r0.fill=signed:0.3

# few units, each sequence in a block alone: around 64 and 128 units, more steps than are fetched ahead, sequences beyond the blocks, lengths,
# layers, directions, dropout in between, weights that lie turned
rnn_forward x=f32/33x3x2 w=[f32/200x2] r=[f32/200x50] bw=[f32/200] br=[f32/200] h0=f32/1x3x50 c0=f32/1x3x50 ht=? ct=? lengths=i32/3 gates=? cells=? ; lengths.is=33,0,7 r0.fill=signed:0.13 as=f16
rnn_forward x=f32/6x2x3 w=[f32/256x3,f32/256x3,f32/256x128,f32/256x128] r=[f32/256x64,f32/256x64,f32/256x64,f32/256x64] bw=[f32/256,f32/256,f32/256,f32/256] br=[f32/256,f32/256,f32/256,f32/256] h0=f32/4x2x64 c0=f32/4x2x64 ht=? ct=? lengths=i32/2 gates=? cells=? inner=? layers=2 direction=both ; lengths.is=6,2 r0.fill=signed:0.11 r1.fill=signed:0.11 r2.fill=signed:0.11 r3.fill=signed:0.11 as=bf16
rnn_forward x=f32/5x2x3 w=[f32/260x3] r=[f32/260x65/t] bw=[f32/260] br=[f32/260] h0=f32/1x2x65 c0=f32/1x2x65 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.11
rnn_forward x=f32/9x3x3 w=[f32/300x3,f32/300x3] r=[f32/300x100,f32/300x100] bw=[f32/300,f32/300] br=[f32/300,f32/300] h0=f32/2x3x100 ht=? lengths=i32/3 gates=? cell=gru direction=both ; lengths.is=9,4,0 r0.fill=signed:0.09 r1.fill=signed:0.09 as=f16
rnn_forward x=f32/7x3x3 w=[f32/512x3] r=[f32/512x128] bw=[f32/512] br=[f32/512] h0=f32/1x3x128 c0=f32/1x3x128 ht=? ct=? gates=? cells=? ; r0.fill=signed:0.08 as=f16
rnn_forward x=f32/7x2x3 w=[f32/384x3] r=[f32/384x128] bw=[f32/384] br=[f32/384] h0=f32/1x2x128 ht=? gates=? cell=gru direction=backward ; r0.fill=signed:0.08 as=bf16
rnn_forward x=f32/33x2x3 w=[f32/50x3] r=[f32/50x50] bw=[f32/50] br=[f32/50] h0=f32/1x2x50 ht=? cell=tanh ; r0.fill=signed:0.13
rnn_forward x=f32/3x2x3 w=[f32/100x3,f32/100x3] r=[f32/100x100,f32/100x100] bw=[f32/100,f32/100] br=[f32/100,f32/100] h0=f32/2x2x100 ht=? cell=tanh direction=both ; r0.fill=signed:0.09 r1.fill=signed:0.09
rnn_forward x=f32/3x2x3 w=[f32/127x3] r=[f32/127x127] bw=[f32/127] br=[f32/127] h0=f32/1x2x127 ht=? cell=relu direction=backward ; r0.fill=signed:0.08 as=bf16
rnn_forward x=f32/2x70x1 w=[f32/150x1] r=[f32/150x50] bw=[f32/150] br=[f32/150] cell=gru ; r0.fill=signed:0.13
rnn_forward x=f32/3x5x2 w=[f32/132x2,f32/132x33] r=[f32/132x33,f32/132x33] bw=[f32/132,f32/132] br=[f32/132,f32/132] gates=? cells=? inner=? seed=9 layers=2 dropout=0.25 clip=0.25 ; r0.fill=signed:0.16 r1.fill=signed:0.16
rnn_forward x=f32/1x3x3 w=[f32/400x3] r=[f32/400x100] bw=[f32/400] br=[f32/400] gates=? cells=? ; r0.fill=signed:0.09
rnn_backward dy=f32/33x3x50 dht=f32/1x3x50 dct=f32/1x3x50 x=f32/33x3x2 y=f32/33x3x50 w=[f32/200x2] r=[f32/200x50] h0=f32/1x3x50 c0=f32/1x3x50 lengths=i32/3 gates=f32/1x33x3x200 cells=f32/1x33x3x50 dr=? dbw=? dh0=? dc0=? ; gates.fill=pos lengths.is=33,0,7 r0.fill=signed:0.04
rnn_backward dy=f32/6x2x128 dht=f32/4x2x64 dct=f32/4x2x64 x=f32/6x2x3 y=f32/6x2x128 w=[f32/256x3,f32/256x3,f32/256x128,f32/256x128] r=[f32/256x64,f32/256x64,f32/256x64,f32/256x64] h0=f32/4x2x64 c0=f32/4x2x64 lengths=i32/2 gates=f32/4x6x2x256 cells=f32/4x6x2x64 inner=f32/1x6x2x128 dr=? dbw=? dh0=? dc0=? layers=2 direction=both ; gates.fill=pos lengths.is=6,2 r0.fill=signed:0.04 r1.fill=signed:0.04 r2.fill=signed:0.04 r3.fill=signed:0.04
rnn_backward dy=f32/5x2x65 dht=f32/1x2x65 dct=f32/1x2x65 x=f32/5x2x3 y=f32/5x2x65 w=[f32/260x3] r=[f32/260x65/t] h0=f32/1x2x65 c0=f32/1x2x65 gates=f32/1x5x2x260 cells=f32/1x5x2x65 dr=? dbw=? dh0=? dc0=? ; gates.fill=pos r0.fill=signed:0.04 as=f16
rnn_backward dy=f32/9x3x200 dht=f32/2x3x100 x=f32/9x3x3 y=f32/9x3x200 w=[f32/300x3,f32/300x3] r=[f32/300x100,f32/300x100] h0=f32/2x3x100 lengths=i32/3 gates=f32/2x9x3x400 dr=? dbw=? dh0=? cell=gru direction=both ; gates.fill=pos lengths.is=9,4,0 r0.fill=signed:0.03 r1.fill=signed:0.03
rnn_backward dy=f32/4x3x128 dht=f32/1x3x128 dct=f32/1x3x128 x=f32/4x3x3 y=f32/4x3x128 w=[f32/512x3] r=[f32/512x128] h0=f32/1x3x128 c0=f32/1x3x128 gates=f32/1x4x3x512 cells=f32/1x4x3x128 dr=? dbw=? dh0=? dc0=? ; gates.fill=pos r0.fill=signed:0.03 as=f16
rnn_backward dy=f32/4x2x128 dht=f32/1x2x128 x=f32/4x2x3 y=f32/4x2x128 w=[f32/384x3] r=[f32/384x128] h0=f32/1x2x128 gates=f32/1x4x2x512 dr=? dbw=? dh0=? cell=gru direction=backward ; gates.fill=pos r0.fill=signed:0.03
rnn_backward dy=f32/9x2x50 dht=f32/1x2x50 x=f32/9x2x3 y=f32/9x2x50 w=[f32/50x3] r=[f32/50x50] h0=f32/1x2x50 dr=? dbw=? dh0=? cell=tanh ; r0.fill=signed:0.02
rnn_backward dy=f32/3x2x256 dht=f32/2x2x128 x=f32/3x2x3 y=f32/3x2x256 w=[f32/128x3,f32/128x3] r=[f32/128x128,f32/128x128] h0=f32/2x2x128 dr=? dbw=? dh0=? cell=tanh direction=both ; r0.fill=signed:0.05 r1.fill=signed:0.05
rnn_backward dy=f32/3x2x127 dht=f32/1x2x127 x=f32/3x2x3 y=f32/3x2x127 w=[f32/127x3] r=[f32/127x127] h0=f32/1x2x127 dr=? dbw=? dh0=? cell=relu direction=backward ; r0.fill=signed:0.05 as=bf16
rnn_backward dy=f32/2x70x50 x=f32/2x70x1 y=f32/2x70x50 w=[f32/150x1] r=[f32/150x50] gates=f32/1x2x70x200 dr=? dbw=? cell=gru ; gates.fill=pos r0.fill=signed:0.05
rnn_backward dy=f32/3x5x33 x=f32/3x5x2 y=f32/3x5x33 w=[f32/132x2,f32/132x33] r=[f32/132x33,f32/132x33] gates=f32/2x3x5x132 cells=f32/2x3x5x33 inner=f32/1x3x5x33 dr=? dbw=? layers=2 clip=0.25 ; gates.fill=pos r0.fill=signed:0.05 r1.fill=signed:0.05
rnn_backward dy=f32/1x3x100 x=f32/1x3x3 y=f32/1x3x100 w=[f32/400x3] r=[f32/400x100] gates=f32/1x1x3x400 cells=f32/1x1x3x100 dr=? dbw=? ; gates.fill=pos r0.fill=signed:0.03

# few sequences of many units, a launch a step: rows in pieces of 16 bytes, sequences beyond those of a warp, lengths, directions, layers, no state
rnn_backward dy=f32/9x1x264 dht=f32/1x1x264 dct=f32/1x1x264 x=f32/9x1x3 y=f32/9x1x264 w=[f32/1056x3] r=[f32/1056x264] h0=f32/1x1x264 c0=f32/1x1x264 gates=f32/1x9x1x1056 cells=f32/1x9x1x264 dr=? dbw=? dh0=? dc0=? ; gates.fill=pos r0.fill=signed:0.01 as=f16
rnn_backward dy=f32/4x11x48 dht=f32/2x11x24 x=f32/4x11x3 y=f32/4x11x48 w=[f32/72x3,f32/72x3] r=[f32/72x24,f32/72x24] h0=f32/2x11x24 lengths=i32/11 gates=f32/2x4x11x96 dr=? dbw=? dh0=? cell=gru direction=both ; lengths.is=4,0,2,1,3,4,4,0,1,2,9 gates.fill=pos r0.fill=signed:0.1 r1.fill=signed:0.1 as=bf16
rnn_backward dy=f32/3x4x136 x=f32/3x4x3 y=f32/3x4x136 w=[f32/136x3,f32/136x136] r=[f32/136x136,f32/136x136/t] inner=f32/1x3x4x136 dr=? dbw=? layers=2 cell=tanh ; r0.fill=signed:0.05 r1.fill=signed:0.05 w1.fill=signed:0.05
rnn_forward x=f32/9x1x3 w=[f32/1056x3] r=[f32/1056x264] bw=[f32/1056] br=[f32/1056] ht=? ct=? cells=? ; r0.fill=signed:0.05 as=f16
rnn_forward x=f32/4x11x3 w=[f32/72x3,f32/72x3] r=[f32/72x24,f32/72x24] bw=[f32/72,f32/72] h0=f32/2x11x24 lengths=i32/11 ht=? gates=? cell=gru direction=both ; lengths.is=4,0,2,1,3,4,4,0,1,2,9 r0.fill=signed:0.2 r1.fill=signed:0.2 as=bf16
rnn_forward x=f32/3x4x3 w=[f32/136x3,f32/136x136] r=[f32/136x136,f32/136x136] inner=? layers=2 cell=tanh ; r0.fill=signed:0.05 r1.fill=signed:0.05 w1.fill=signed:0.05
# a gradient by one of the first states alone, sequences without a step
rnn_backward dy=f32/2x3x8 dct=f32/1x3x8 x=f32/2x3x5 y=f32/2x3x8 w=[f32/32x5] r=[f32/32x8] c0=f32/1x3x8 lengths=i32/3 gates=f32/1x2x3x32 cells=f32/1x2x3x8 dbw=? dc0=? ; lengths.is=1,0,2 gates.fill=pos as=f16
rnn_backward dy=f32/2x2x16 dht=f32/1x2x16 x=f32/2x2x5 y=f32/2x2x16 w=[f32/16x5] r=[f32/16x16] h0=f32/1x2x16 lengths=i32/2 dbw=? dh0=? cell=relu ; lengths.is=0,1 as=bf16
# rows of recurrent weights that do not begin aligned, laid out anew
rnn_forward x=f16/8x2x3 w=[f16/1032x3] r=[f16/1032x258] bw=[f16/1032] br=[f16/1032] ht=? ct=? ; r0.fill=signed:0.05 as=bf16
rnn_forward x=f16/8x2x3 w=[f16/1038x3,f16/1038x3] r=[f16/1038x346,f16/1038x346] h0=f16/2x2x346 lengths=i32/2 ht=? gates=? cell=gru direction=both ; lengths.is=8,5 r0.fill=signed:0.05 r1.fill=signed:0.05
rnn_backward dy=f32/1x3x40 x=f32/1x3x5 y=f32/1x3x40 w=[f32/120x5] r=[f32/120x40] gates=f32/1x1x3x120 dx=? dw=? dr=? cell=gru reset=before ; gates.fill=pos r0.fill=signed:0.1
rnn_backward dy=f32/1x3x40 x=f32/1x3x5 y=f32/1x3x40 w=[f32/120x5] r=[f32/120x40] gates=f32/1x1x3x160 dx=? dw=? dr=? cell=gru ; gates.fill=pos r0.fill=signed:0.1

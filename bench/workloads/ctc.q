# Connectionist temporal classification at the sizes of speech and text recognisers: characters, word pieces, phonemes.

ctc_loss x=f32/1000x64x32 labels=i32/64x100 x_lengths=i32/64 label_lengths=i32/64 lse=? reduction=mean ; name=ctc.f32.characters
ctc_loss x=f32/400x32x5000 labels=i32/32x60 x_lengths=i32/32 label_lengths=i32/32 lse=? reduction=mean ; name=ctc.f32.pieces
ctc_loss x=bf16/400x32x5000 labels=i32/32x60 x_lengths=i32/32 label_lengths=i32/32 lse=? reduction=mean ; name=ctc.bf16.pieces
ctc_loss x=f32/150x256x80 labels=i32/256x25 x_lengths=i32/256 label_lengths=i32/256 lse=? reduction=mean ; name=ctc.f32.text

ctc_loss_backward dy=f32/1 x=f32/1000x64x32 labels=i32/64x100 x_lengths=i32/64 label_lengths=i32/64 lse=f32/1000x64x1 reduction=mean ; name=ctc.backward.f32.characters
ctc_loss_backward dy=f32/1 x=f32/400x32x5000 labels=i32/32x60 x_lengths=i32/32 label_lengths=i32/32 lse=f32/400x32x1 reduction=mean ; name=ctc.backward.f32.pieces
ctc_loss_backward dy=f32/1 x=bf16/400x32x5000 labels=i32/32x60 x_lengths=i32/32 label_lengths=i32/32 lse=f32/400x32x1 reduction=mean ; name=ctc.backward.bf16.pieces
ctc_loss_backward dy=f32/1 x=f32/150x256x80 labels=i32/256x25 x_lengths=i32/256 label_lengths=i32/256 lse=f32/150x256x1 reduction=mean ; name=ctc.backward.f32.text

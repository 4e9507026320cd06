# The softmax problems that most of 91 models run, with the number of models and of calls. Made by bench/field/field.py.

# as handed over
softmax x=f32/8x8x49x49 ; models=2 count=5
softmax x=f16/8x4x48x48 ; models=1 count=12
softmax x=bf16/2x4x1569x393 ; models=1 count=10
softmax x=f32/32x12x49x49 ; models=1 count=6
softmax x=f16/8x12x392x392 ; models=1 count=6
softmax x=bf16/8x2x1x256 axis=1 ; models=1 count=6
softmax x=f32/8x12x16x16 ; models=1 count=4
softmax x=f16/8x2x1x128 axis=1 ; models=1 count=4
softmax x=bf16/8x4x196x196 ; models=1 count=4
softmax x=f32/8x6x196x9x9 ; models=1 count=4
softmax x=f16/8x12x32x32 ; models=1 count=3
softmax x=bf16/8x2x1x512 axis=1 ; models=1 count=3
softmax x=f32/8x2x1x64 axis=1 ; models=1 count=3
softmax x=f16/8x4x1x197 ; models=1 count=3
softmax x=bf16/8x4x1x401 ; models=1 count=3
softmax x=f32/128x3x392x392 ; models=1 count=2
softmax x=f16/128x6x49x49 ; models=1 count=2
softmax x=bf16/2x24x392x392 ; models=1 count=2
softmax x=f32/32x6x392x392 ; models=1 count=2
softmax x=f16/512x3x49x49 ; models=1 count=2
softmax x=bf16/8x12x1x197 ; models=1 count=2
softmax x=f32/8x24x49x49 ; models=1 count=2
softmax x=f16/8x2x128x1x1 axis=1 ; models=1 count=2
softmax x=bf16/8x2x256x1x1 axis=1 ; models=1 count=2
softmax x=f32/8x2x512x1x1 axis=1 ; models=1 count=2
softmax x=f16/8x2x64x1x1 axis=1 ; models=1 count=2
softmax x=bf16/2x1x25089x393 ; models=1 count=1
softmax x=f32/2x2x6273x1569 ; models=1 count=1
softmax x=f16/2x2x6273x393 ; models=1 count=1
softmax x=bf16/2x4x1569x1569 ; models=1 count=1
softmax x=f32/2x8x393x1569 ; models=1 count=1
softmax x=f16/2x8x393x393 ; models=1 count=1
softmax x=bf16/8x16x16x49 ; models=1 count=1
softmax x=f32/8x24x32x32 ; models=1 count=1
softmax x=f16/8x3x32x32 ; models=1 count=1
softmax x=bf16/8x6x32x32 ; models=1 count=1
softmax x=f32/8x8x12x12 ; models=1 count=1
softmax x=f16/8x8x20x20 ; models=1 count=1
softmax x=bf16/8x8x38x38 ; models=1 count=1
softmax x=f32/8x8x49x196 ; models=1 count=1

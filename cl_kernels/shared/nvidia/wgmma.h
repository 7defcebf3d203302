// Warpgroup instructions of NVIDIA's Hopper GPUs: four warps multiply 64 rows by up to 256 columns. The driver's compiler
// does not know them: they are written as comments //@, which the program cache makes instructions in the compiled text.
#ifndef CONCORD_NVIDIA_WGMMA_H
#define CONCORD_NVIDIA_WGMMA_H

// The sums of an instruction: their names in its text and their operands.
#define REGISTERS_32 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define REGISTERS_64 REGISTERS_32 "," \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define REGISTERS_96 REGISTERS_64 "," \
  "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define REGISTERS_128 REGISTERS_96 "," \
  "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define FOUR(d, o) "+f"((d)[o]), "+f"((d)[(o) + 1]), "+f"((d)[(o) + 2]), "+f"((d)[(o) + 3])
#define SIXTEEN(d, o) FOUR(d, o), FOUR(d, (o) + 4), FOUR(d, (o) + 8), FOUR(d, (o) + 12)
#define OPERANDS_32(d) SIXTEEN(d, 0), SIXTEEN(d, 16)
#define OPERANDS_64(d) OPERANDS_32(d), SIXTEEN(d, 32), SIXTEEN(d, 48)
#define OPERANDS_96(d) OPERANDS_64(d), SIXTEEN(d, 64), SIXTEEN(d, 80)
#define OPERANDS_128(d) OPERANDS_96(d), SIXTEEN(d, 96), SIXTEEN(d, 112)

#define WGMMA_FENCE() asm volatile("//@wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_COMMIT() asm volatile("//@wgmma.commit_group.sync.aligned;" ::: "memory")
#define WGMMA_WAIT() asm volatile("//@wgmma.wait_group.sync.aligned 0;" ::: "memory")
#define WGMMA_WAIT_BUT_ONE() asm volatile("//@wgmma.wait_group.sync.aligned 1;" ::: "memory")

#endif

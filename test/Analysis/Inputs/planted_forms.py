"""Bugs planted in what ws_tmem does beside 16-bit queries in two tiles, for planted.py: 8-bit
operands, one tile in a CTA, rows that are gathered, keys of two pools or that are widened, states
to go on from, results in halves, results that scales or other CTAs share."""

ONE = "--set=tiles=1,pack_heads=true"
KERNELS = {
    "over": "--q=1x1x256x64xf8E4M3FN --kv-len=300 --set=p_beside=false",
    "beside": "--q=1x1x256x64xf8E5M2 --kv-len=300 --set=p_beside=true",
    "one": "--q=1x1x140x256xbf16 --kv-len=300",
    "gather": "--q=1x64x1x64xbf16 --kv-heads=1 --kv-lengths=300 --page-size=1 --selected " + ONE,
    "pools": "--q=1x16x1x64xbf16 --kv-heads=1 --kv-lengths=130 --page-size=16 --added-page-size=1"
    " --added-lengths=70 --window=40,0,bottom-right --kv-splits=1 " + ONE + ",block_n=64",
    "widen": "--q=1x8x1x64xbf16 --kv-heads=1 --kv-len=300 --kv-type=f8E4M3FN --descales " + ONE + ",kv_stages=2",
    "init": "--q=1x1x140x256xbf16 --kv-len=300 --init-state",
    "ctas": "--q=1x1x140x512xbf16 --kv-len=300 --set=dynamic=true",
    "runs": "--q=1x64x1x64xbf16 --kv-heads=1 --kv-len=300 --kv-splits=2 --partials=f16 " + ONE,
    "groups": "--q=1x1x256x64xbf16 --kv-len=300 --out-type=f8E4M3FN --out-group=64",
    "tma": "--q=1x1x512x64xbf16 --kv-len=300 --set=epilogue=tma",
}
KERNELS = {name: f"--chip=sm_100a --schedule=ws_tmem {flags}" for name, flags in KERNELS.items()}
KERNELS["merged"] = (
    "--chip=sm_80 --schedule=decode --q=1x8x1x64xf16 --kv-heads=2 --kv-len=600 --kv-splits=2"
    " --set=combine=launch"
)

ROWS = "#attn.tmem_regs<shape_32x32b, warps = [4, 1]>"
#: In front of a line: probabilities of 8 bits, which lie over the scores.
EARLY = (r"^", "%early = arith.constant dense<0.0> : tensor<128x128xf8E4M3FN, " + ROWS + ">\n"
         "attn.tmem.store %early, %p : tensor<128x128xf8E4M3FN, " + ROWS + ">, "
         "!attn.buffer<128x128xf8E4M3FN, #attn.tmem<m = 128>, tmem>\n")  # fmt: skip
#: What is stored as it would be for a group that nobody has looked at.
CONSTANT = (r"( *)attn\.global_store %\d+, (\S+) : (tensor<.*>>), (.*)$",
            r"\1%early = arith.constant dense<1.0> : \3\n\1attn.global_store %early, \2 : \3, \4")
BUGS = (
    ("over", "8-bit probabilities are written before the scores are read",
     r"%result = attn\.tmem\.load %s :", 0, EARLY, "race"),
    ("over", "8-bit probabilities are handed over before they are written",
     r"tmem\.store_wait", 0, None, "race"),
    ("over", "the field of the probabilities is too short",
     r"tmem_alloc .*name = \"s0\"", 0, ('"p", 96, 32', '"p", 96, 16'), "'attn.tmem.field' op expected at most the 16 columns of field 'p', got 32"),
    ("over", "the field of the probabilities begins where other scores stand",
     r"tmem_alloc .*name = \"s0\"", 0, ("column = 0", "column = 64"), "race"),
    ("over", "too few columns are taken",
     r"tmem\.reserve", 0, ("columns = 512", "columns = 256"), "lifetime"),
    ("beside", "8-bit probabilities are overwritten while a product reads them",
     r"mbarrier\.wait %p0\.mma", 1, None, "signal in the wrong phase"),
    ("beside", "the second part of the probabilities is not waited for",
     r"mbarrier\.wait %p0\.softmax0\[%\d+\]", 0, None, "signal in the wrong phase"),
    ("one", "results are rescaled under the product before",
     r"mbarrier\.wait %o0\.mma", 1, None, "signal in the wrong phase"),
    ("one", "probabilities of a tile's first keys are not waited for",
     r"mbarrier\.wait %t0\.softmax0", 4, None, "race"),
    ("one", "a tile's results are stored while products add to them",
     r"mbarrier\.wait %o\.mma", 0, None, "race"),
    ("one", "results are handed back before the last columns are read",
     r"tcgen05\.fence before", -1, None, "missing tensor fence"),
    ("one", "factors are read before they are written",
     r"mbarrier\.wait %factor\.softmax0", 0, None, "deadlock"),
    ("gather", "rows of another block are gathered",
     r"mbarrier\.wait %rows\.rows", 0, None, "deadlock"),
    ("gather", "numbers of rows are overwritten before they are used",
     r"mbarrier\.wait %rows\.load", 0, None, "phase slip"),
    ("gather", "one of two warps says for both that their numbers of rows are there",
     r"mbarrier\.init %rows\.rows", 0, ("count = 2", "count = 1"), "deadlock"),
    ("gather", "a gather announces half of its bytes",
     r"expect_tx %k\.load", 0, ("bytes = 16384", "bytes = 8192"), "wrong count"),
    ("gather", "numbers of rows are handed back by another slot",
     r"mbarrier\.arrive %rows\.load", 0, None, "deadlock"),
    ("pools", "keys of one of two pools are not copied",
     r"tma\.gather", 1, None, "deadlock"),
    ("pools", "a block of one pool is copied from the other",
     r"tma\.gather", 2, ("%arg13", "%arg12"), "simulator: values"),
    ("pools", "places behind the last key of a pool are seen",
     r"attn\.apply_mask", 0, (r"limit %\w+ ", ""), "simulator: values"),
    ("widen", "keys are widened before they are there",
     r"mbarrier\.wait %raw_k\.load", 0, None, "phase slip"),
    ("widen", "products read keys that are being widened",
     r"mbarrier\.wait %k\.widen", 0, None, "phase slip"),
    ("widen", "widened keys are read without a proxy fence",
     r"fence\.proxy_async", 1, None, "missing proxy fence"),
    ("widen", "widened values overwrite those that products read",
     r"mbarrier\.wait %v\.mma", 2, None, "signal in the wrong phase"),
    ("init", "weights are overwritten before they are read",
     r"mbarrier\.wait %factor\.results", 0, None, "race"),
    ("init", "weights are read after they were handed back",
     r"mbarrier\.arrive %factor\.results", 0, None, "deadlock"),
    ("ctas", "the number of a tile is read by one CTA of two",
     r"mbarrier\.wait %tile\.", 0, None, "race"),
    ("groups", "a scale is stored before the largest of its group is known",
     r"global_store %\d+, .* : tensor<128xf32", -1, CONSTANT, "simulator: values"),
    ("groups", "a scale is that of the sum of its group",
     r"= attn\.reduce max ", -1, ("reduce max", "reduce add"), "simulator: values"),
    ("runs", "the scales of partial results are stored before these are known",
     r"global_store %\d+, .* : tensor<128xf32", 1, CONSTANT, "simulator: values"),
    ("merged", "a partial result is published before it is stored",
     r"attn\.global_store .*tensor<16x16xf32", 0, ("behind", r"attn\.tile_arrive"), "simulator: race"),
    ("merged", "a run counts as two",
     r"attn\.tile_arrive", 0, ("of %c2_i32", "of %c1_i32"), "simulator: race"),
    ("tma", "results are overwritten while a store reads them",
     r"attn\.tma\.wait", 0, None, "race"),
    ("tma", "results are stored without a proxy fence",
     r"fence\.proxy_async", 1, None, "missing proxy fence"),
)  # fmt: skip

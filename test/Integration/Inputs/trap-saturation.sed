# Traps in front of each conversion to 8 bits whose value is beyond LIMIT.
s/cvt\.rn\.satfinite\.e[45]m[23]x2\.f32[[:space:]]+(%rs[0-9]+), (%[a-z]+[0-9]+), (%[a-z]+[0-9]+);/{ .reg .pred q, r; setp.gt.f32 q, \2, LIMIT; setp.gt.f32 r, \3, LIMIT; or.pred q, q, r; @q trap; }\n&/

//! What CPython 3.11 decides.

use super::version::{Facts, Fused, Layout, Second, Text};

pub(super) const FACTS: Facts = Facts {
    minor: 11,
    names: NAMES,
    specialised: SPECIALISED,
    caches: CACHES,
    fused: &[
        // LOAD_CONST__LOAD_FAST
        Fused::new(44, 2, Second::Always),
        // LOAD_FAST__LOAD_CONST
        Fused::new(
            45,
            2,
            Second::Left {
                at: 4,
                may_jump: false,
            },
        ),
        // LOAD_FAST__LOAD_FAST
        Fused::new(46, 2, Second::Read),
        // STORE_FAST__LOAD_FAST
        Fused::new(161, 2, Second::Always),
        // STORE_FAST__STORE_FAST
        Fused::new(167, 2, Second::Always),
        // BINARY_OP_INPLACE_ADD_UNICODE
        Fused::new(
            7,
            4,
            Second::Left {
                at: 6,
                may_jump: false,
            },
        ),
        // PRECALL_NO_KW_LIST_APPEND
        Fused::new(
            79,
            14,
            Second::Left {
                at: 16,
                may_jump: false,
            },
        ),
        // COMPARE_OP_FLOAT_JUMP
        Fused::new(
            27,
            6,
            Second::Left {
                at: 8,
                may_jump: true,
            },
        ),
        // COMPARE_OP_INT_JUMP
        Fused::new(
            28,
            6,
            Second::Left {
                at: 8,
                may_jump: true,
            },
        ),
        // COMPARE_OP_STR_JUMP
        Fused::new(
            29,
            6,
            Second::Left {
                at: 8,
                may_jump: true,
            },
        ),
    ],
    // DO_TRACING
    again: &[255],
    traced: &[],
    ends_of_loops: 0,
    layout: Layout {
        first_line: 0x48,
        code: 0xb8,
        monitoring: None,
        text: Text {
            ascii: 0x30,
            other: 0x48,
        },
        to_frame: &[0x38, 0x08],
        to_threads: [0x30, 0x10],
        thread_id: 0x98,
    },
};

#[rustfmt::skip]
const NAMES: &[(u8, &str)] = &[
    (0, "CACHE"), (1, "POP_TOP"), (2, "PUSH_NULL"), (9, "NOP"), (10, "UNARY_POSITIVE"),
    (11, "UNARY_NEGATIVE"), (12, "UNARY_NOT"), (15, "UNARY_INVERT"), (25, "BINARY_SUBSCR"),
    (30, "GET_LEN"), (31, "MATCH_MAPPING"), (32, "MATCH_SEQUENCE"), (33, "MATCH_KEYS"),
    (35, "PUSH_EXC_INFO"), (36, "CHECK_EXC_MATCH"), (37, "CHECK_EG_MATCH"),
    (49, "WITH_EXCEPT_START"), (50, "GET_AITER"), (51, "GET_ANEXT"), (52, "BEFORE_ASYNC_WITH"),
    (53, "BEFORE_WITH"), (54, "END_ASYNC_FOR"), (60, "STORE_SUBSCR"), (61, "DELETE_SUBSCR"),
    (68, "GET_ITER"), (69, "GET_YIELD_FROM_ITER"), (70, "PRINT_EXPR"), (71, "LOAD_BUILD_CLASS"),
    (74, "LOAD_ASSERTION_ERROR"), (75, "RETURN_GENERATOR"), (82, "LIST_TO_TUPLE"),
    (83, "RETURN_VALUE"), (84, "IMPORT_STAR"), (85, "SETUP_ANNOTATIONS"), (86, "YIELD_VALUE"),
    (87, "ASYNC_GEN_WRAP"), (88, "PREP_RERAISE_STAR"), (89, "POP_EXCEPT"), (90, "STORE_NAME"),
    (91, "DELETE_NAME"), (92, "UNPACK_SEQUENCE"), (93, "FOR_ITER"), (94, "UNPACK_EX"),
    (95, "STORE_ATTR"), (96, "DELETE_ATTR"), (97, "STORE_GLOBAL"), (98, "DELETE_GLOBAL"),
    (99, "SWAP"), (100, "LOAD_CONST"), (101, "LOAD_NAME"), (102, "BUILD_TUPLE"),
    (103, "BUILD_LIST"), (104, "BUILD_SET"), (105, "BUILD_MAP"), (106, "LOAD_ATTR"),
    (107, "COMPARE_OP"), (108, "IMPORT_NAME"), (109, "IMPORT_FROM"), (110, "JUMP_FORWARD"),
    (111, "JUMP_IF_FALSE_OR_POP"), (112, "JUMP_IF_TRUE_OR_POP"), (114, "POP_JUMP_FORWARD_IF_FALSE"),
    (115, "POP_JUMP_FORWARD_IF_TRUE"), (116, "LOAD_GLOBAL"), (117, "IS_OP"), (118, "CONTAINS_OP"),
    (119, "RERAISE"), (120, "COPY"), (122, "BINARY_OP"), (123, "SEND"), (124, "LOAD_FAST"),
    (125, "STORE_FAST"), (126, "DELETE_FAST"), (128, "POP_JUMP_FORWARD_IF_NOT_NONE"),
    (129, "POP_JUMP_FORWARD_IF_NONE"), (130, "RAISE_VARARGS"), (131, "GET_AWAITABLE"),
    (132, "MAKE_FUNCTION"), (133, "BUILD_SLICE"), (134, "JUMP_BACKWARD_NO_INTERRUPT"),
    (135, "MAKE_CELL"), (136, "LOAD_CLOSURE"), (137, "LOAD_DEREF"), (138, "STORE_DEREF"),
    (139, "DELETE_DEREF"), (140, "JUMP_BACKWARD"), (142, "CALL_FUNCTION_EX"), (144, "EXTENDED_ARG"),
    (145, "LIST_APPEND"), (146, "SET_ADD"), (147, "MAP_ADD"), (148, "LOAD_CLASSDEREF"),
    (149, "COPY_FREE_VARS"), (151, "RESUME"), (152, "MATCH_CLASS"), (155, "FORMAT_VALUE"),
    (156, "BUILD_CONST_KEY_MAP"), (157, "BUILD_STRING"), (160, "LOAD_METHOD"), (162, "LIST_EXTEND"),
    (163, "SET_UPDATE"), (164, "DICT_MERGE"), (165, "DICT_UPDATE"), (166, "PRECALL"), (171, "CALL"),
    (172, "KW_NAMES"), (173, "POP_JUMP_BACKWARD_IF_NOT_NONE"), (174, "POP_JUMP_BACKWARD_IF_NONE"),
    (175, "POP_JUMP_BACKWARD_IF_FALSE"), (176, "POP_JUMP_BACKWARD_IF_TRUE"),
];

#[rustfmt::skip]
const SPECIALISED: &[(u8, u8)] = &[
    (3, 122), (4, 122), (5, 122), (6, 122), (7, 122), (8, 122), (13, 122), (14, 122), (16, 122),
    (17, 25), (18, 25), (19, 25), (20, 25), (21, 25), (22, 171), (23, 171), (24, 171), (26, 107),
    (27, 107), (28, 107), (29, 107), (34, 144), (38, 140), (39, 106), (40, 106), (41, 106),
    (42, 106), (43, 106), (44, 100), (45, 124), (46, 124), (47, 116), (48, 116), (55, 116),
    (56, 160), (57, 160), (58, 160), (59, 160), (62, 160), (63, 160), (64, 166), (65, 166),
    (66, 166), (67, 166), (72, 166), (73, 166), (76, 166), (77, 166), (78, 166), (79, 166),
    (80, 166), (81, 166), (113, 166), (121, 166), (127, 166), (141, 166), (143, 166), (150, 151),
    (153, 95), (154, 95), (158, 95), (159, 95), (161, 125), (167, 125), (168, 60), (169, 60),
    (170, 60), (177, 92), (178, 92), (179, 92), (180, 92),
];

#[rustfmt::skip]
const CACHES: &[(&str, usize)] = &[
    ("STORE_SUBSCR", 1), ("UNPACK_SEQUENCE", 1), ("BINARY_OP", 1), ("PRECALL", 1), ("COMPARE_OP", 2),
    ("BINARY_SUBSCR", 4), ("STORE_ATTR", 4), ("LOAD_ATTR", 4), ("CALL", 4), ("LOAD_GLOBAL", 5),
    ("LOAD_METHOD", 10),
];

//! What CPython 3.12 decides.

use super::version::{Facts, Fused, Layout, Monitoring, Second, Text};

pub(super) const FACTS: Facts = Facts {
    minor: 12,
    names: NAMES,
    specialised: SPECIALISED,
    caches: CACHES,
    fused: &[
        // LOAD_CONST__LOAD_FAST
        Fused::new(84, 2, Second::Always),
        // LOAD_FAST__LOAD_CONST
        Fused::new(86, 2, Second::Always),
        // LOAD_FAST__LOAD_FAST
        Fused::new(88, 2, Second::Always),
        // STORE_FAST__LOAD_FAST
        Fused::new(154, 2, Second::Always),
        // STORE_FAST__STORE_FAST
        Fused::new(158, 2, Second::Always),
        // BINARY_OP_INPLACE_ADD_UNICODE
        Fused::new(
            10,
            4,
            Second::Left {
                at: 6,
                may_jump: false,
            },
        ),
        // CALL_NO_KW_LIST_APPEND
        Fused::new(
            43,
            8,
            Second::Left {
                at: 10,
                may_jump: false,
            },
        ),
    ],
    again: &[],
    traced: &[253, 254],
    ends_of_loops: 1,
    layout: Layout {
        first_line: 0x44,
        code: 0xc0,
        monitoring: Some(Monitoring {
            at: 0xa8,
            lines: 0x28,
            instructions: 0x38,
        }),
        text: Text {
            ascii: 0x28,
            other: 0x38,
        },
        to_frame: &[0x38, 0x00],
        to_threads: [0x30, 0x48],
        thread_id: 0x88,
    },
};

#[rustfmt::skip]
const NAMES: &[(u8, &str)] = &[
    (0, "CACHE"), (1, "POP_TOP"), (2, "PUSH_NULL"), (3, "INTERPRETER_EXIT"), (4, "END_FOR"),
    (5, "END_SEND"), (9, "NOP"), (11, "UNARY_NEGATIVE"), (12, "UNARY_NOT"), (15, "UNARY_INVERT"),
    (17, "RESERVED"), (25, "BINARY_SUBSCR"), (26, "BINARY_SLICE"), (27, "STORE_SLICE"),
    (30, "GET_LEN"), (31, "MATCH_MAPPING"), (32, "MATCH_SEQUENCE"), (33, "MATCH_KEYS"),
    (35, "PUSH_EXC_INFO"), (36, "CHECK_EXC_MATCH"), (37, "CHECK_EG_MATCH"),
    (49, "WITH_EXCEPT_START"), (50, "GET_AITER"), (51, "GET_ANEXT"), (52, "BEFORE_ASYNC_WITH"),
    (53, "BEFORE_WITH"), (54, "END_ASYNC_FOR"), (55, "CLEANUP_THROW"), (60, "STORE_SUBSCR"),
    (61, "DELETE_SUBSCR"), (68, "GET_ITER"), (69, "GET_YIELD_FROM_ITER"), (71, "LOAD_BUILD_CLASS"),
    (74, "LOAD_ASSERTION_ERROR"), (75, "RETURN_GENERATOR"), (83, "RETURN_VALUE"),
    (85, "SETUP_ANNOTATIONS"), (87, "LOAD_LOCALS"), (89, "POP_EXCEPT"), (90, "STORE_NAME"),
    (91, "DELETE_NAME"), (92, "UNPACK_SEQUENCE"), (93, "FOR_ITER"), (94, "UNPACK_EX"),
    (95, "STORE_ATTR"), (96, "DELETE_ATTR"), (97, "STORE_GLOBAL"), (98, "DELETE_GLOBAL"),
    (99, "SWAP"), (100, "LOAD_CONST"), (101, "LOAD_NAME"), (102, "BUILD_TUPLE"),
    (103, "BUILD_LIST"), (104, "BUILD_SET"), (105, "BUILD_MAP"), (106, "LOAD_ATTR"),
    (107, "COMPARE_OP"), (108, "IMPORT_NAME"), (109, "IMPORT_FROM"), (110, "JUMP_FORWARD"),
    (114, "POP_JUMP_IF_FALSE"), (115, "POP_JUMP_IF_TRUE"), (116, "LOAD_GLOBAL"), (117, "IS_OP"),
    (118, "CONTAINS_OP"), (119, "RERAISE"), (120, "COPY"), (121, "RETURN_CONST"),
    (122, "BINARY_OP"), (123, "SEND"), (124, "LOAD_FAST"), (125, "STORE_FAST"),
    (126, "DELETE_FAST"), (127, "LOAD_FAST_CHECK"), (128, "POP_JUMP_IF_NOT_NONE"),
    (129, "POP_JUMP_IF_NONE"), (130, "RAISE_VARARGS"), (131, "GET_AWAITABLE"),
    (132, "MAKE_FUNCTION"), (133, "BUILD_SLICE"), (134, "JUMP_BACKWARD_NO_INTERRUPT"),
    (135, "MAKE_CELL"), (136, "LOAD_CLOSURE"), (137, "LOAD_DEREF"), (138, "STORE_DEREF"),
    (139, "DELETE_DEREF"), (140, "JUMP_BACKWARD"), (141, "LOAD_SUPER_ATTR"),
    (142, "CALL_FUNCTION_EX"), (143, "LOAD_FAST_AND_CLEAR"), (144, "EXTENDED_ARG"),
    (145, "LIST_APPEND"), (146, "SET_ADD"), (147, "MAP_ADD"), (149, "COPY_FREE_VARS"),
    (150, "YIELD_VALUE"), (151, "RESUME"), (152, "MATCH_CLASS"), (155, "FORMAT_VALUE"),
    (156, "BUILD_CONST_KEY_MAP"), (157, "BUILD_STRING"), (162, "LIST_EXTEND"), (163, "SET_UPDATE"),
    (164, "DICT_MERGE"), (165, "DICT_UPDATE"), (171, "CALL"), (172, "KW_NAMES"),
    (173, "CALL_INTRINSIC_1"), (174, "CALL_INTRINSIC_2"), (175, "LOAD_FROM_DICT_OR_GLOBALS"),
    (176, "LOAD_FROM_DICT_OR_DEREF"), (237, "INSTRUMENTED_LOAD_SUPER_ATTR"),
    (238, "INSTRUMENTED_POP_JUMP_IF_NONE"), (239, "INSTRUMENTED_POP_JUMP_IF_NOT_NONE"),
    (240, "INSTRUMENTED_RESUME"), (241, "INSTRUMENTED_CALL"), (242, "INSTRUMENTED_RETURN_VALUE"),
    (243, "INSTRUMENTED_YIELD_VALUE"), (244, "INSTRUMENTED_CALL_FUNCTION_EX"),
    (245, "INSTRUMENTED_JUMP_FORWARD"), (246, "INSTRUMENTED_JUMP_BACKWARD"),
    (247, "INSTRUMENTED_RETURN_CONST"), (248, "INSTRUMENTED_FOR_ITER"),
    (249, "INSTRUMENTED_POP_JUMP_IF_FALSE"), (250, "INSTRUMENTED_POP_JUMP_IF_TRUE"),
    (251, "INSTRUMENTED_END_FOR"), (252, "INSTRUMENTED_END_SEND"),
    (253, "INSTRUMENTED_INSTRUCTION"), (254, "INSTRUMENTED_LINE"),
];

#[rustfmt::skip]
const SPECIALISED: &[(u8, u8)] = &[
    (6, 122), (7, 122), (8, 122), (10, 122), (13, 122), (14, 122), (16, 122), (18, 122), (19, 25),
    (20, 25), (21, 25), (22, 25), (23, 171), (24, 171), (28, 171), (29, 171), (34, 171), (38, 171),
    (39, 171), (40, 171), (41, 171), (42, 171), (43, 171), (44, 171), (45, 171), (46, 171),
    (47, 171), (48, 171), (56, 171), (57, 107), (58, 107), (59, 107), (62, 93), (63, 93), (64, 93),
    (65, 93), (66, 141), (67, 141), (70, 106), (72, 106), (73, 106), (76, 106), (77, 106),
    (78, 106), (79, 106), (80, 106), (81, 106), (82, 106), (84, 100), (86, 124), (88, 124),
    (111, 116), (112, 116), (113, 95), (148, 95), (153, 95), (154, 125), (158, 125), (159, 60),
    (160, 60), (161, 92), (166, 92), (167, 92), (168, 123),
];

#[rustfmt::skip]
const CACHES: &[(&str, usize)] = &[
    ("BINARY_SUBSCR", 1), ("STORE_SUBSCR", 1), ("UNPACK_SEQUENCE", 1), ("FOR_ITER", 1),
    ("STORE_ATTR", 4), ("LOAD_ATTR", 9), ("COMPARE_OP", 1), ("LOAD_GLOBAL", 4), ("BINARY_OP", 1),
    ("SEND", 1), ("LOAD_SUPER_ATTR", 1), ("CALL", 3),
];

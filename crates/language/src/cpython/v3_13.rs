//! What CPython 3.13 decides.

use super::version::{Facts, Fused, Layout, Monitoring, Second, Text};

pub(super) const FACTS: Facts = Facts {
    minor: 13,
    names: NAMES,
    specialised: SPECIALISED,
    caches: CACHES,
    fused: &[
        // BINARY_OP_INPLACE_ADD_UNICODE
        Fused::new(
            3,
            4,
            Second::Left {
                at: 6,
                may_jump: false,
            },
        ),
        // CALL_LIST_APPEND
        Fused::new(
            171,
            8,
            Second::Left {
                at: 10,
                may_jump: false,
            },
        ),
    ],
    again: &[],
    traced: &[247, 254],
    ends_of_loops: 2,
    layout: Layout {
        first_line: 0x44,
        code: 0xc8,
        monitoring: Some(Monitoring {
            at: 0xb0,
            lines: 0x20,
            instructions: 0x30,
        }),
        text: Text {
            ascii: 0x28,
            other: 0x38,
        },
        to_frame: &[0x48],
        to_threads: [0x278, 0x1cb0],
        thread_id: 0x98,
    },
};

#[rustfmt::skip]
const NAMES: &[(u8, &str)] = &[
    (0, "CACHE"), (1, "BEFORE_ASYNC_WITH"), (2, "BEFORE_WITH"), (4, "BINARY_SLICE"),
    (5, "BINARY_SUBSCR"), (6, "CHECK_EG_MATCH"), (7, "CHECK_EXC_MATCH"), (8, "CLEANUP_THROW"),
    (9, "DELETE_SUBSCR"), (10, "END_ASYNC_FOR"), (11, "END_FOR"), (12, "END_SEND"),
    (13, "EXIT_INIT_CHECK"), (14, "FORMAT_SIMPLE"), (15, "FORMAT_WITH_SPEC"), (16, "GET_AITER"),
    (17, "RESERVED"), (18, "GET_ANEXT"), (19, "GET_ITER"), (20, "GET_LEN"),
    (21, "GET_YIELD_FROM_ITER"), (22, "INTERPRETER_EXIT"), (23, "LOAD_ASSERTION_ERROR"),
    (24, "LOAD_BUILD_CLASS"), (25, "LOAD_LOCALS"), (26, "MAKE_FUNCTION"), (27, "MATCH_KEYS"),
    (28, "MATCH_MAPPING"), (29, "MATCH_SEQUENCE"), (30, "NOP"), (31, "POP_EXCEPT"), (32, "POP_TOP"),
    (33, "PUSH_EXC_INFO"), (34, "PUSH_NULL"), (35, "RETURN_GENERATOR"), (36, "RETURN_VALUE"),
    (37, "SETUP_ANNOTATIONS"), (38, "STORE_SLICE"), (39, "STORE_SUBSCR"), (40, "TO_BOOL"),
    (41, "UNARY_INVERT"), (42, "UNARY_NEGATIVE"), (43, "UNARY_NOT"), (44, "WITH_EXCEPT_START"),
    (45, "BINARY_OP"), (46, "BUILD_CONST_KEY_MAP"), (47, "BUILD_LIST"), (48, "BUILD_MAP"),
    (49, "BUILD_SET"), (50, "BUILD_SLICE"), (51, "BUILD_STRING"), (52, "BUILD_TUPLE"), (53, "CALL"),
    (54, "CALL_FUNCTION_EX"), (55, "CALL_INTRINSIC_1"), (56, "CALL_INTRINSIC_2"), (57, "CALL_KW"),
    (58, "COMPARE_OP"), (59, "CONTAINS_OP"), (60, "CONVERT_VALUE"), (61, "COPY"),
    (62, "COPY_FREE_VARS"), (63, "DELETE_ATTR"), (64, "DELETE_DEREF"), (65, "DELETE_FAST"),
    (66, "DELETE_GLOBAL"), (67, "DELETE_NAME"), (68, "DICT_MERGE"), (69, "DICT_UPDATE"),
    (70, "ENTER_EXECUTOR"), (71, "EXTENDED_ARG"), (72, "FOR_ITER"), (73, "GET_AWAITABLE"),
    (74, "IMPORT_FROM"), (75, "IMPORT_NAME"), (76, "IS_OP"), (77, "JUMP_BACKWARD"),
    (78, "JUMP_BACKWARD_NO_INTERRUPT"), (79, "JUMP_FORWARD"), (80, "LIST_APPEND"),
    (81, "LIST_EXTEND"), (82, "LOAD_ATTR"), (83, "LOAD_CONST"), (84, "LOAD_DEREF"),
    (85, "LOAD_FAST"), (86, "LOAD_FAST_AND_CLEAR"), (87, "LOAD_FAST_CHECK"),
    (88, "LOAD_FAST_LOAD_FAST"), (89, "LOAD_FROM_DICT_OR_DEREF"), (90, "LOAD_FROM_DICT_OR_GLOBALS"),
    (91, "LOAD_GLOBAL"), (92, "LOAD_NAME"), (93, "LOAD_SUPER_ATTR"), (94, "MAKE_CELL"),
    (95, "MAP_ADD"), (96, "MATCH_CLASS"), (97, "POP_JUMP_IF_FALSE"), (98, "POP_JUMP_IF_NONE"),
    (99, "POP_JUMP_IF_NOT_NONE"), (100, "POP_JUMP_IF_TRUE"), (101, "RAISE_VARARGS"),
    (102, "RERAISE"), (103, "RETURN_CONST"), (104, "SEND"), (105, "SET_ADD"),
    (106, "SET_FUNCTION_ATTRIBUTE"), (107, "SET_UPDATE"), (108, "STORE_ATTR"), (109, "STORE_DEREF"),
    (110, "STORE_FAST"), (111, "STORE_FAST_LOAD_FAST"), (112, "STORE_FAST_STORE_FAST"),
    (113, "STORE_GLOBAL"), (114, "STORE_NAME"), (115, "SWAP"), (116, "UNPACK_EX"),
    (117, "UNPACK_SEQUENCE"), (118, "YIELD_VALUE"), (149, "RESUME"), (236, "INSTRUMENTED_RESUME"),
    (237, "INSTRUMENTED_END_FOR"), (238, "INSTRUMENTED_END_SEND"),
    (239, "INSTRUMENTED_RETURN_VALUE"), (240, "INSTRUMENTED_RETURN_CONST"),
    (241, "INSTRUMENTED_YIELD_VALUE"), (242, "INSTRUMENTED_LOAD_SUPER_ATTR"),
    (243, "INSTRUMENTED_FOR_ITER"), (244, "INSTRUMENTED_CALL"), (245, "INSTRUMENTED_CALL_KW"),
    (246, "INSTRUMENTED_CALL_FUNCTION_EX"), (247, "INSTRUMENTED_INSTRUCTION"),
    (248, "INSTRUMENTED_JUMP_FORWARD"), (249, "INSTRUMENTED_JUMP_BACKWARD"),
    (250, "INSTRUMENTED_POP_JUMP_IF_TRUE"), (251, "INSTRUMENTED_POP_JUMP_IF_FALSE"),
    (252, "INSTRUMENTED_POP_JUMP_IF_NONE"), (253, "INSTRUMENTED_POP_JUMP_IF_NOT_NONE"),
    (254, "INSTRUMENTED_LINE"),
];

#[rustfmt::skip]
const SPECIALISED: &[(u8, u8)] = &[
    (3, 45), (150, 45), (151, 45), (152, 45), (153, 45), (154, 45), (155, 45), (156, 45), (157, 5),
    (158, 5), (159, 5), (160, 5), (161, 5), (162, 53), (163, 53), (164, 53), (165, 53), (166, 53),
    (167, 53), (168, 53), (169, 53), (170, 53), (171, 53), (172, 53), (173, 53), (174, 53),
    (175, 53), (176, 53), (177, 53), (178, 53), (179, 53), (180, 53), (181, 53), (182, 58),
    (183, 58), (184, 58), (185, 59), (186, 59), (187, 72), (188, 72), (189, 72), (190, 72),
    (191, 82), (192, 82), (193, 82), (194, 82), (195, 82), (196, 82), (197, 82), (198, 82),
    (199, 82), (200, 82), (201, 82), (202, 82), (203, 91), (204, 91), (205, 93), (206, 93),
    (207, 149), (208, 104), (209, 108), (210, 108), (211, 108), (212, 39), (213, 39), (214, 40),
    (215, 40), (216, 40), (217, 40), (218, 40), (219, 40), (220, 117), (221, 117), (222, 117),
];

#[rustfmt::skip]
const CACHES: &[(&str, usize)] = &[
    ("BINARY_SUBSCR", 1), ("STORE_SUBSCR", 1), ("TO_BOOL", 3), ("BINARY_OP", 1), ("CALL", 3),
    ("COMPARE_OP", 1), ("CONTAINS_OP", 1), ("FOR_ITER", 1), ("JUMP_BACKWARD", 1), ("LOAD_ATTR", 9),
    ("LOAD_GLOBAL", 4), ("LOAD_SUPER_ATTR", 1), ("POP_JUMP_IF_FALSE", 1), ("POP_JUMP_IF_NONE", 1),
    ("POP_JUMP_IF_NOT_NONE", 1), ("POP_JUMP_IF_TRUE", 1), ("SEND", 1), ("STORE_ATTR", 4),
    ("UNPACK_SEQUENCE", 1),
];

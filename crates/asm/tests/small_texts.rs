//! Small texts: the shape of their flow graphs, and where probes stand in them.

use headcount_asm::{Counted, Options, Source, Unit};
use headcount_model::{BlockId, Edge, EdgeId, Node, Place, Plan, Refusal};

/// A function `f` as a compiler would write it, with something behind it.
fn written_by_a_compiler(body: &str, behind: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f, @function\nf:\n.LFB0:\n\t.cfi_startproc\n{body}\n\
         \t.cfi_endproc\n.LFE0:\n\t.size f, .-f\n{behind}\n\t.ident \"GCC: (GNU) 12.2.0\"\n"
    )
}

fn options() -> Options {
    Options {
        name: "small.s".to_owned(),
    }
}

fn with_units<T>(text: &str, look: impl FnOnce(&Source, Vec<Unit>, Vec<Refusal>) -> T) -> T {
    let source = Source::parse(text, &options()).expect("the text is readable");
    let (units, refusals) = headcount_asm::units(&source);
    look(&source, units, refusals)
}

fn named(node: Node) -> String {
    match node {
        Node::Outside => "-".to_owned(),
        Node::Block(block) => block.0.to_string(),
    }
}

/// The edges of the first unit, as `from>to kind`, sorted. Blocks are numbered in the order of the
/// text.
fn edges(text: &str) -> Vec<String> {
    with_units(text, |_, units, _| {
        let name = |it: &Edge| format!("{}>{} {}", named(it.from), named(it.to), it.kind.name());
        let mut all: Vec<String> = units[0].graph.edges.iter().map(name).collect();
        all.sort();
        all
    })
}

/// The text, counted at these places of its first unit.
fn counted(text: &str, places: impl Fn(&Unit) -> Vec<Place>) -> String {
    with_units(text, |source, units, refusals| {
        let counted: Vec<Counted> = units
            .into_iter()
            .take(1)
            .map(|unit| Counted {
                plan: Plan {
                    counters: places(&unit),
                },
                unit,
            })
            .collect();
        headcount_asm::insert(
            source,
            &counted,
            &refusals,
            headcount_asm::Keeper::Runtime(""),
            "/",
        )
    })
}

fn every_block(unit: &Unit) -> Vec<Place> {
    let block = |number| Place::Block(BlockId(number));
    (0..unit.graph.blocks).map(block).collect()
}

/// The edge between two nodes.
fn edge_between(unit: &Unit, from: u32, to: u32) -> Vec<Place> {
    let (from, to) = (Node::Block(BlockId(from)), Node::Block(BlockId(to)));
    let all = &unit.graph.edges;
    let found = all.iter().position(|it| (it.from, it.to) == (from, to));
    vec![Place::Edge(EdgeId(found.expect("such an edge") as u32))]
}

/// The line that ends with this instruction, or has it in its midst.
fn line_with<'a>(text: &'a str, instruction: &str) -> &'a str {
    let line = text.lines().find(|line| line.contains(instruction));
    line.unwrap_or_else(|| panic!("no `{instruction}` in\n{text}"))
}

/// Do these stand in the text in this order?
fn assert_in_order(text: &str, pieces: &[&str]) {
    let mut rest = text;
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            panic!("`{piece}` is missing, or too early, in\n{text}");
        };
        rest = &rest[at + piece.len()..];
    }
}

#[test]
fn a_loop_has_an_edge_back_and_one_onwards() {
    let text = written_by_a_compiler(
        "\tmovl $10, %eax\n.L2:\n\tsubl $1, %eax\n\tjne .L2\n\tret",
        "",
    );
    let wanted = [
        "->0 entry",
        "0>1 fall",
        "1>1 taken",
        "1>2 fall",
        "2>- leave",
    ];
    assert_eq!(edges(&text), wanted);
}

#[test]
fn a_switch_leaves_through_its_table_and_arrives_at_its_cases() {
    let text = written_by_a_compiler(
        "\tcmpl $1, %edi\n\tja .L4\n\tmovl %edi, %edi\n\tjmp *.L3(,%rdi,8)\n\
         \t.section .rodata\n.L3:\n\t.quad .L1\n\t.quad .L2\n\t.text\n\
         .L1:\n\tmovl $1, %eax\n\tret\n.L2:\n\tmovl $2, %eax\n\tret\n.L4:\n\tmovl $3, %eax\n\tret",
        "",
    );
    let wanted = [
        "->0 entry",
        "->2 arrival",
        "->3 arrival",
        "0>1 fall",
        "0>4 taken",
        "1>- leave",
        "2>- leave",
        "3>- leave",
        "4>- leave",
    ];
    assert_eq!(edges(&text), wanted);
}

#[test]
fn a_call_that_may_not_come_back_ends_its_block() {
    let text = written_by_a_compiler("\tcall g\n\taddl $1, %eax\n\tret", "");
    let wanted = ["->0 entry", "0>- lost", "0>1 fall", "1>- leave"];
    assert_eq!(edges(&text), wanted);
    let indirect = written_by_a_compiler("\tcall *%rax\n\tret", "");
    assert_eq!(edges(&indirect), wanted);
}

#[test]
fn a_call_that_surely_comes_back_ends_nothing() {
    let text = written_by_a_compiler("\tcall memcpy@PLT\n\taddl $1, %eax\n\tret", "");
    assert_eq!(edges(&text), ["->0 entry", "0>- leave"]);
}

#[test]
fn a_function_of_that_name_in_the_same_file_is_not_trusted() {
    let own =
        "\t.globl memcpy\n\t.type memcpy, @function\nmemcpy:\n\tret\n\t.size memcpy, .-memcpy";
    let text = written_by_a_compiler("\tcall memcpy\n\tret", own);
    assert!(edges(&text).contains(&"0>- lost".to_owned()));
}

#[test]
fn setjmp_returns_from_outside_every_time() {
    let text = written_by_a_compiler("\tcall _setjmp@PLT\n\ttestl %eax, %eax\n\tret", "");
    let wanted = ["->0 entry", "->1 arrival", "0>- lost", "1>- leave"];
    assert_eq!(edges(&text), wanted);
}

#[test]
fn a_landing_pad_is_arrived_at() {
    let table = "\t.section .gcc_except_table,\"a\",@progbits\n.LLSDA0:\n\t.byte 0xff\n\t.byte 0xff\n\
                 \t.byte 0x1\n\t.uleb128 .LLSDACSE0-.LLSDACSB0\n.LLSDACSB0:\n\
                 \t.uleb128 .LEHB0-.LFB0\n\t.uleb128 .LEHE0-.LEHB0\n\t.uleb128 .L3-.LFB0\n\
                 \t.uleb128 0\n.LLSDACSE0:\n\t.text";
    let text = written_by_a_compiler(
        "\t.cfi_lsda 0x3,.LLSDA0\n.LEHB0:\n\tcall g\n.LEHE0:\n\tret\n.L3:\n\tmovq %rax, %rdi\n\
         \tcall _Unwind_Resume@PLT",
        table,
    );
    let wanted = [
        "->0 entry",
        "->2 arrival",
        "0>- lost",
        "0>1 fall",
        "1>- leave",
        "2>- lost",
    ];
    let mut found = edges(&text);
    // Whether the end of a function can be fallen through is not what this test is about.
    found.retain(|edge| edge != "2>- leave");
    assert_eq!(found, wanted);
}

#[test]
fn a_cold_part_belongs_to_its_function() {
    let cold = "\t.section .text.unlikely\n\t.type f.cold, @function\nf.cold:\n\tcall abort\n\
                \t.size f.cold, .-f.cold";
    let text = written_by_a_compiler("\ttestl %edi, %edi\n\tje f.cold\n\tret", cold);
    with_units(&text, |_, units, _| {
        assert_eq!(units.len(), 1);
        assert_eq!(units[0].parts.len(), 2);
        assert_eq!(units[0].cold, [false, false, true]);
    });
    let edges = edges(&text);
    assert!(edges.contains(&"0>2 taken".to_owned()), "{edges:?}");
    assert!(!edges.contains(&"->2 entry".to_owned()), "{edges:?}");
}

#[test]
fn a_jump_to_another_function_leaves() {
    let other = "\t.type g, @function\ng:\n\tret\n\t.size g, .-g";
    let text = written_by_a_compiler("\taddl $1, %edi\n\tjmp g", other);
    assert_eq!(edges(&text), ["->0 entry", "0>- leave"]);
    with_units(&text, |_, units, _| assert_eq!(units.len(), 2));
}

#[test]
fn a_conditional_jump_to_another_function_leaves_or_goes_on() {
    let text = written_by_a_compiler("\ttestl %edi, %edi\n\tje g\n\tret", "");
    let wanted = ["->0 entry", "0>- leave", "0>1 fall", "1>- leave"];
    assert_eq!(edges(&text), wanted);
}

#[test]
fn a_call_that_never_comes_back_makes_its_block_cold() {
    let text = written_by_a_compiler(
        "\ttestl %edi, %edi\n\tje .L2\n\tret\n.L2:\n\tcall abort@PLT",
        "",
    );
    with_units(&text, |_, units, _| {
        assert_eq!(units[0].cold, [false, false, true]);
    });
}

#[test]
fn a_jump_to_nowhere_in_sight_is_refused() {
    let text = written_by_a_compiler("\tjmp .L77", "");
    with_units(&text, |_, units, refusals| {
        assert!(units.is_empty());
        assert_eq!(refusals.len(), 1);
        assert_eq!(refusals[0].subject, "f");
        assert!(refusals[0].reason.contains(".L77"), "{refusals:?}");
    });
}

#[test]
fn where_flags_are_dead_a_probe_is_one_increment() {
    let text = written_by_a_compiler("\tmovl %edi, %eax\n\taddl $1, %eax\n\tret", "");
    let counted = counted(&text, every_block);
    assert_eq!(counted.matches("incq %gs:").count(), 1);
    assert!(!counted.contains("leaq 1("), "{counted}");
}

#[test]
fn a_probe_goes_around_the_stretch_where_flags_are_live() {
    let text = written_by_a_compiler(
        "\tmovl $1, %ecx\n\tcmpl $3, %edi\n\tmovl $2, %edx\n\tcmove %ecx, %edx\n\tmovl %edx, %eax\n\tret",
        "",
    );
    let counted = counted(&text, every_block);
    for inside in ["movl $2, %edx", "cmove %ecx, %edx"] {
        let line = line_with(&counted, inside);
        assert!(!line.contains("incq"), "{line}");
    }
    assert_eq!(counted.matches("incq %gs:").count(), 1);
}

/// Flags are live on the way from block 0 to block 1 of this, and rax is overwritten there.
const FLAGS_LIVE: &str = "\tcmpl $3, %edi\n\tje .L2\n.L5:\n\tmovl $0, %eax\n\tjg .L3\n\tret\n\
                          .L2:\n\tret\n.L3:\n\tret";

#[test]
fn a_probe_where_flags_are_live_uses_a_register_that_is_dead() {
    let text = written_by_a_compiler(FLAGS_LIVE, "");
    let counted = counted(&text, |unit| edge_between(unit, 0, 1));
    let line = line_with(&counted, "je .L2");
    assert_in_order(
        line,
        &["je .L2", ", %rax; leaq 1(%rax), %rax; movq %rax, %gs:"],
    );
    assert!(!line.contains("pushq"), "{line}");
}

#[test]
fn a_probe_where_everything_is_live_saves_a_register_below_the_red_zone() {
    // A person wrote this, so everything is live where it leaves.
    let text = "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tje 1f\n\tjg 1f\n1:\tret\n\t.size f, .-f\n";
    let counted = counted(text, |unit| edge_between(unit, 0, 1));
    let probe = [
        "je 1f",
        "leaq -128(%rsp), %rsp; pushq %rax; ",
        "leaq 1(%rax), %rax; ",
        "popq %rax; leaq 128(%rsp), %rsp",
    ];
    assert_in_order(line_with(&counted, "je 1f"), &probe);
    assert!(!counted.contains("incq"), "{counted}");
}

#[test]
fn a_probe_on_a_branch_stands_on_a_detour_behind_the_function() {
    let text = written_by_a_compiler("\ttestl %edi, %edi\n\tje .L2\n\tnop\n.L2:\n\tret", "");
    let counted = counted(&text, |unit| edge_between(unit, 0, 2));
    let branch = line_with(&counted, "je ");
    assert!(!branch.contains("je .L2"), "{branch}");
    let (_, behind) = branch.split_once("je ").expect("a branch");
    let end = behind.find([';', ' ']).unwrap_or(behind.len());
    let detour = &behind[..end];
    let label = format!("{detour}: ");
    assert_in_order(&counted, &["ret", &label, "incq %gs:", "jmp .L2"]);
}

#[test]
fn a_branch_that_knows_short_distances_only_is_led_over_a_jump_even_without_a_probe() {
    for branch in ["loop", "jrcxz"] {
        let text = written_by_a_compiler(&format!(".L2:\n\tdecl %eax\n\t{branch} .L2\n\tret"), "");
        let counted = counted(&text, |_| Vec::new());
        let line = line_with(&counted, &format!("{branch} "));
        assert!(!line.contains(&format!("{branch} .L2")), "{line}");
        assert_in_order(line, &[branch, "; jmp .L", "; .L", ": jmp .L2; .L"]);
    }
}

#[test]
fn what_asks_for_a_thread_local_variable_stays_whole() {
    let sequence = "\tdata16 leaq x@tlsgd(%rip), %rdi\n\t.value 0x6666\n\trex64\n\
                    \tcall __tls_get_addr@PLT\n";
    let text = written_by_a_compiler(&format!("{sequence}\tmovl (%rax), %eax\n\tret"), "");
    assert_eq!(edges(&text), ["->0 entry", "0>- leave"]);
    let counted = counted(&text, every_block);
    // A probe or a label may stand before the whole of it, and behind.
    let (_, rest) = counted
        .split_once("data16 leaq x@tlsgd(%rip), %rdi\n")
        .expect("nothing behind the first line");
    assert!(
        rest.starts_with("\t.value 0x6666\n\trex64\n\tcall __tls_get_addr@PLT"),
        "{rest}"
    );
}

#[test]
fn a_prefix_on_a_line_of_its_own_stays_with_its_instruction() {
    for prefix in ["lock", "rep", "lock;"] {
        let text = written_by_a_compiler(
            &format!("\ttestl %edi, %edi\n\tje .L2\n\t{prefix}\n\tstosb\n.L2:\n\tret"),
            "",
        );
        let counted = counted(&text, every_block);
        let glued = format!("{prefix}\n\tstosb");
        assert!(counted.contains(&glued), "{counted}");
    }
}

#[test]
fn what_follows_inline_assembly_begins_a_line_of_its_own() {
    let text = written_by_a_compiler(
        "#APP\n# 1 \"a.c\" 1\n\tint $0x80\n# 0 \"\" 2\n#NO_APP\n\tret",
        "",
    );
    let counted = counted(&text, |unit| {
        let mut places = every_block(unit);
        places.extend((0..unit.graph.edges.len() as u32).map(|it| Place::Edge(EdgeId(it))));
        places
    });
    assert!(counted.contains("#NO_APP\n\tincq "), "{counted}");
    for line in counted.lines().filter(|line| line.contains("#NO_APP")) {
        // The rest of such a line would be a comment.
        assert!(line.ends_with("#NO_APP"), "{line}");
    }
}

#[test]
fn endbr64_stays_first_at_its_place() {
    let text = written_by_a_compiler("\tendbr64\n\taddl $1, %edi\n\tret", "");
    let counted = counted(&text, every_block);
    let line = line_with(&counted, "endbr64");
    let (before, _) = line.split_once("endbr64").expect("it is there");
    assert!(!before.contains('%'), "{line}");
    assert!(counted.contains("incq %gs:"));
}

#[test]
fn lines_stay_where_they_were() {
    let text = written_by_a_compiler(FLAGS_LIVE, "");
    let counted = counted(&text, every_block);
    for (number, (before, after)) in text.lines().zip(counted.lines()).enumerate() {
        let word = before.split_whitespace().next().unwrap_or_default();
        assert!(
            after.contains(word),
            "line {number}: {before:?} became {after:?}"
        );
    }
}

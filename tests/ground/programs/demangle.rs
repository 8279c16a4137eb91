//! Names of both of Rust's manglings, read by rustc-demangle: ARGUMENT times.

use std::fmt::Write;

const NAMES: [&str; 17] = [
    "_RINvCs5JNAybJ9MVI_1n7pointedThNtB2_4str2EEB2_",
    "_RINvXsC_NtNtNtCsgEmfK2I1SDS_4core4iter6traits5accumyNtB6_3Sum3sumINtNtNtBa_8adapters3map3MapINtNtNtBc_5slice4iter4IterhENCNvXCs5JNAybJ9MVI_1nINtB1Z_3PenhKj2_ENtB1Z_5Count5count0EEB1Z_",
    "_RINvYINtNtNtCsgEmfK2I1SDS_4core5slice4iter4IterhENtNtNtNtBa_4iter6traits8iterator8Iterator3mapyNCNvXCs5JNAybJ9MVI_1nINtB1A_3PenhKj2_ENtB1A_5Count5count0EB1A_",
    "_RINvYINtNtNtNtCsgEmfK2I1SDS_4core4iter8adapters3map3MapINtNtNtBc_5slice4iter4IterhENCNvXCs5JNAybJ9MVI_1nINtB1o_3PenhKj2_ENtB1o_5Count5count0ENtNtNtBa_6traits8iterator8Iterator3sumyEB1o_",
    "_RINvYINtNtNtNtCsjrHSEGnQ3l9_3std11collections4hash3map6ValuesReINtNtCslNYArtu3iFV_5alloc5boxed3BoxDNtCs5JNAybJ9MVI_1n5CountNtNtCsgEmfK2I1SDS_4core6marker4SendEL_EENtNtNtNtB21_4iter6traits8iterator8Iterator3mapyNCNvB1B_u14hirtenflte_lcb0EB1B_",
    "_RNCINvXsC_NtNtNtCsgEmfK2I1SDS_4core4iter6traits5accumyNtB8_3Sum3sumINtNtNtBc_8adapters3map3MapINtNtNtBe_5slice4iter4IterhENCNvXCs5JNAybJ9MVI_1nINtB21_3PenhKj2_ENtB21_5Count5count0EE0B21_",
    "_RINvMs6_NtNtCsgEmfK2I1SDS_4core3fmt8buildersNtB6_8DebugMap7entriesRNtNtCslNYArtu3iFV_5alloc6string6StringRNtCskylh0WJ2hq7_4json5ValueINtNtNtNtB17_11collections5btree3map4IterB13_B1G_EEB1I_",
    "_RNSNvYNCINvNtCsjrHSEGnQ3l9_3std2rt10lang_startuE0INtNtNtCsgEmfK2I1SDS_4core3ops8function6FnOnceuE9call_once6vtableCskylh0WJ2hq7_4json.llvm.12969442863602350581",
    "_RNvXCskylh0WJ2hq7_4jsonNtB2_5ValueNtNtCsgEmfK2I1SDS_4core3fmt7Display3fmt",
    "_ZN5flock4tail17h0123456789abcdefE",
    "_ZN5flock8pasture$5Bu8$3b$20$33$5D17h0123456789abcdefE",
    "_ZN47_$LT$flock..Sheep$u20$as$u20$flock..Counted$GT$5count17h0123456789abcdefE",
    "_ZN4wool10_$RF$twice4$C$xE.llvm.77",
    "_RNvCs5JNAybJ9MVI_1nu14hirtenflte_lcb",
    "_RNvMs_Cs5JNAybJ9MVI_1nINtB4_4FlagKcdf_Kb1_Kan5_E4flagB4_",
    "no_name_of_Rust",
    "_RNvC5",
];

fn main() {
    let argument = std::env::args().nth(1).and_then(|it| it.parse().ok());
    let mut all = String::new();
    for round in 0..argument.unwrap_or(1) {
        for name in NAMES {
            let shown = rustc_demangle::demangle(name);
            match round % 2 {
                0 => write!(all, "{shown}"),
                _ => write!(all, "{shown:#}"),
            }
            .expect("a string takes everything");
            // Names that are cut short are names, too, or none.
            let cut = name.len() * 2 / 3;
            if let Ok(part) = rustc_demangle::try_demangle(&name[..cut]) {
                write!(all, "{part}").expect("a string takes everything");
            }
        }
    }
    println!("{}", all.len());
}

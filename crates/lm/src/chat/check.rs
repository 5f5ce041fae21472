//! A look at what a compiled template does, before it runs.

use minijinja::Template;
use minijinja::machinery::{Instruction, Instructions, get_compiled_template};
use std::collections::HashSet;

/// The function whose result a template may assign to.
const NAMESPACE: &str = "namespace";

/// Describes the first instruction by which values could come to nest ever deeper; `None` if there is none.
///
/// Lists, tuples and dicts may hold constants only, and a namespace may be asked for its attributes and assigned to, but neither be
/// a value of a variable or an argument. Messages and what methods and filters make of them nest a few levels deep.
pub fn nesting_fault(template: &Template<'_, '_>) -> Option<String> {
    let instructions = &get_compiled_template(template).instructions;
    let pairs = || (0..).map_while(|index| Some((index, instructions.get(index)?, instructions.get(index + 1))));
    let mut namespaces = HashSet::new();
    for (index, instruction, next) in pairs() {
        match (instruction, next) {
            (Instruction::BuildList(Some(_)) | Instruction::BuildTuple(_) | Instruction::BuildMap(_), _) => {
                return Some(at(instructions, index, "it builds a list, tuple or dict of anything but constants"));
            }
            (Instruction::CallFunction(NAMESPACE, _), Some(Instruction::StoreLocal(name))) => {
                namespaces.insert(*name);
            }
            (Instruction::CallFunction(NAMESPACE, _), _) | (Instruction::Lookup(NAMESPACE), _) => {
                return Some(at(
                    instructions,
                    index,
                    "it uses `namespace` other than in `{% set NAME = namespace(...) %}`",
                ));
            }
            _ => {}
        }
    }
    let misused = pairs().find_map(|(index, instruction, next)| match instruction {
        Instruction::Lookup(name) if namespaces.contains(name) => {
            let is_member = matches!(next, Some(Instruction::GetAttr(_) | Instruction::SetAttr(_)));
            (!is_member).then_some((index, *name))
        }
        _ => None,
    });
    misused.map(|(index, name)| {
        at(instructions, index, &format!("it uses the namespace `{name}` other than by its attributes"))
    })
}

fn at(instructions: &Instructions<'_>, index: u32, fault: &str) -> String {
    match instructions.get_line(index) {
        Some(line) => format!("line {line}: {fault}, whose size nothing would bound"),
        None => format!("{fault}, whose size nothing would bound"),
    }
}

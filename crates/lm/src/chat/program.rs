//! A template as instructions, without those by which its values could grow past what fuel bounds.

use super::environment::syntax;
use minijinja::machinery::{CompiledTemplate, Instruction, Instructions, TemplateConfig, eval, make_string_output};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Name of the template in messages.
const NAME: &str = "chat_template";
/// The function whose result a template may assign to.
const NAMESPACE: &str = "namespace";
/// The function that stands for the operator, which a template cannot name.
pub const ADD: &str = "+";

/// A compiled template.
pub struct Program<'s>(CompiledTemplate<'s>);

impl<'s> Program<'s> {
    /// Compiles a template. Additions become calls of [`ADD`].
    pub fn compile(source: &'s str) -> Result<Self, Error> {
        let config = TemplateConfig { syntax_config: syntax()?, default_auto_escape: Arc::new(|_| AutoEscape::None) };
        let mut compiled = CompiledTemplate::new(NAME, source, &config)?;
        let mut index = 0;
        while let Some(instruction) = compiled.instructions.get_mut(index) {
            if matches!(instruction, Instruction::Add) {
                *instruction = Instruction::CallFunction(ADD, Some(2));
            }
            index += 1;
        }
        Ok(Self(compiled))
    }

    /// Renders it with these variables.
    pub fn run(&'s self, environment: &'s Environment<'s>, variables: Value) -> Result<String, Error> {
        let mut text = String::new();
        let mut output = make_string_output(&mut text);
        let Self(CompiledTemplate { instructions, blocks, .. }) = self;
        eval(environment, instructions, variables, blocks, &mut output, AutoEscape::None)?;
        Ok(text)
    }

    /// Describes the first instruction by which values could come to nest ever deeper or to repeat without a bound; `None` if there
    /// is none.
    ///
    /// Lists, tuples and dicts may hold constants only, nothing may be multiplied, and a namespace may be asked for its attributes and
    /// assigned to, but neither be a value of a variable or an argument. Messages and what methods and filters make of them nest a few
    /// levels deep.
    pub fn unbounded_growth(&self) -> Option<String> {
        let Self(CompiledTemplate { instructions, .. }) = self;
        let pairs = || (0..).map_while(|index| Some((index, instructions.get(index)?, instructions.get(index + 1))));
        let (mut namespaces, mut constants) = (HashSet::new(), 0_usize);
        for (index, instruction, next) in pairs() {
            let operands = match instruction {
                Instruction::BuildList(Some(count)) | Instruction::BuildTuple(Some(count)) => Some(*count),
                Instruction::BuildMap(count) => Some(2 * count),
                _ => None,
            };
            constants = match (operands, instruction) {
                (Some(operands), _) if operands <= constants => constants - operands + 1,
                (Some(_), _) => {
                    return Some(in_line(
                        instructions,
                        index,
                        "it builds a list, tuple or dict of anything but constants",
                    ));
                }
                (None, Instruction::LoadConst(_)) => constants + 1,
                (None, _) => 0,
            };
            match (instruction, next) {
                (Instruction::Mul | Instruction::Pow, _) => {
                    return Some(in_line(instructions, index, "it multiplies anything but constants"));
                }
                (Instruction::CallFunction(NAMESPACE, _), Some(Instruction::StoreLocal(name))) => {
                    namespaces.insert(*name);
                }
                (Instruction::CallFunction(NAMESPACE, _), _) | (Instruction::Lookup(NAMESPACE), _) => {
                    return Some(in_line(
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
            in_line(instructions, index, &format!("it uses the namespace `{name}` other than by its attributes"))
        })
    }
}

fn in_line(instructions: &Instructions<'_>, index: u32, fault: &str) -> String {
    match instructions.get_line(index) {
        Some(line) => format!("line {line}: {fault}, whose size nothing would bound"),
        None => format!("{fault}, whose size nothing would bound"),
    }
}

/// Adds two texts or two numbers. Lists are not added: each time would double what they take as text.
pub fn add(left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        return Ok([left, right].concat().into());
    }
    let fault = || {
        let (left, right) = (left.kind(), right.kind());
        Error::new(
            ErrorKind::InvalidOperation,
            format!("`+` takes two texts or two numbers, and not {left} and {right}"),
        )
    };
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.checked_add(right).map(Value::from).ok_or_else(fault);
    }
    match (f64::try_from(left.clone()), f64::try_from(right.clone())) {
        (Ok(left), Ok(right)) => Ok(Value::from(left + right)),
        _ => Err(fault()),
    }
}

//! Parser of operands: literals, names, calls, members, slices, closures.

use std::sync::Arc;

use crate::error::{ConditionErrorKind, Fault, Span};
use crate::syntax::ast::{Kind, NodeId, Pointer};
use crate::syntax::lex::Token;
use crate::syntax::names::{Argument, EnvFunction, Function, closure_arguments};
use crate::syntax::parse::{Closure, Parser};

impl Parser {
    pub(crate) fn primary(&mut self) -> Result<NodeId, Fault> {
        let span = self.span();
        match self.token().clone() {
            Token::Bracket('(') => {
                self.next();
                let inside = self.nested(Self::sequence)?;
                self.expect_bracket(')')?;
                self.postfix(inside)
            }
            Token::Bracket('[') => {
                let array = self.nested(Self::array)?;
                self.postfix(array)
            }
            Token::Bracket('{') => {
                let map = self.nested(Self::map)?;
                self.postfix(map)
            }
            Token::Op(sign) => self.sign(&sign, span),
            Token::Word(word) => self.word(&word, span),
            Token::Int(number) => {
                self.next();
                Ok(self.push(Kind::Int(number), span))
            }
            Token::Float(number) => {
                self.next();
                Ok(self.push(Kind::Float(number), span))
            }
            Token::Str(text) => {
                self.next();
                let node = self.push(Kind::Str(Arc::from(text)), span);
                self.postfix(node)
            }
            Token::Bracket(_) | Token::End => self.unexpected(),
        }
    }

    /// Parses `#`, `.field` inside a closure, or `::function()`.
    fn sign(&mut self, sign: &str, span: Span) -> Result<NodeId, Fault> {
        match sign {
            "#" | "." if !self.closures.is_empty() => {
                let mut which = Pointer::Item;
                if sign == "#" {
                    self.next();
                    if let Token::Word(name) = self.token().clone() {
                        which = self.pointer(&name)?;
                        self.next();
                    }
                }
                let Some(list) = self.closures.last().map(|closure| closure.list) else {
                    return self.unexpected();
                };
                let node = self.push(Kind::Pointer { which, list }, span);
                self.postfix(node)
            }
            "#" => self.unexpected_with(": `#` stands for an element inside all, any, filter, map …"),
            "::" => {
                self.next();
                let Token::Word(name) = self.token().clone() else {
                    return self.unexpected();
                };
                let span = self.span();
                self.next();
                let call = self.call(&name, span, None)?;
                self.postfix(call)
            }
            _ => self.unexpected(),
        }
    }

    fn pointer(&self, name: &str) -> Result<Pointer, Fault> {
        let function = self.closures.last().map(|closure| closure.function);
        match (name, function) {
            ("index", Some(Function::Map | Function::Reduce)) => Ok(Pointer::Index),
            ("acc", Some(Function::Reduce)) => Ok(Pointer::Acc),
            _ => Err(Fault::new(
                ConditionErrorKind::UnknownName,
                format!("unknown pointer `#{name}`; use #index in map and reduce, #acc in reduce, # in all"),
            )
            .at(self.span())),
        }
    }

    fn word(&mut self, word: &str, span: Span) -> Result<NodeId, Fault> {
        self.next();
        // Go allows no member or index directly after these three.
        match word {
            "true" => return Ok(self.push(Kind::Bool(true), span)),
            "false" => return Ok(self.push(Kind::Bool(false), span)),
            "nil" => return Ok(self.push(Kind::Nil, span)),
            _ => {}
        }
        let node = if self.token().is_bracket('(') {
            self.call(word, span, None)?
        } else {
            let kind = self.name(word, span)?;
            self.push(kind, span)
        };
        self.postfix(node)
    }

    /// Rewrites `left | name(args)` to `name(left, args)`.
    pub(crate) fn pipe(&mut self, left: NodeId) -> Result<NodeId, Fault> {
        self.next();
        let Token::Word(name) = self.token().clone() else {
            return self.unexpected_with(", expected a function after `|`");
        };
        let span = self.span();
        self.next();
        self.call(&name, span, Some(left))
    }

    fn call(&mut self, name: &str, span: Span, piped: Option<NodeId>) -> Result<NodeId, Fault> {
        if let Some(function) = Function::find(name) {
            let args = match closure_arguments(function) {
                Some((arguments, required)) => self.closure_call(function, arguments, required, piped)?,
                None => self.arguments(piped)?,
            };
            return Ok(self.push(Kind::Call(function, args), span));
        }
        let function = EnvFunction::find(name);
        let args = self.arguments(piped)?;
        let Some(function) = function else {
            // Names of values cannot be called, and other names do not exist.
            self.name(name, span)?;
            return Err(Fault::mismatch(format!("`{name}` is not a function")).at(span));
        };
        if args.len() != function.arity() {
            let arity = function.arity();
            let noun = if arity == 1 { "argument" } else { "arguments" };
            let message = format!("{name} takes {arity} {noun}, not {}", args.len());
            return Err(Fault::mismatch(message).at(span));
        }
        Ok(self.push(Kind::EnvCall(function, args), span))
    }

    fn closure_call(
        &mut self,
        function: Function,
        arguments: &[Argument],
        required: usize,
        piped: Option<NodeId>,
    ) -> Result<Vec<NodeId>, Fault> {
        self.expect_bracket('(')?;
        let mut args: Vec<NodeId> = piped.into_iter().collect();
        let offset = args.len();
        for (index, argument) in arguments.iter().enumerate().skip(offset) {
            if self.token().is_bracket(')') {
                if index < required {
                    return self
                        .unexpected_with(&format!(": {function} takes at least {required} arguments"));
                }
                break;
            }
            if index > offset {
                self.expect_op(",")?;
            }
            let arg = match (argument, args.first()) {
                (Argument::Closure, Some(list)) => self.closure(function, *list)?,
                _ => self.nested(|p| p.expression(0))?,
            };
            args.push(arg);
        }
        if self.token().is_op(",") {
            self.next();
        }
        self.expect_bracket(')')?;
        Ok(args)
    }

    fn closure(&mut self, function: Function, list: NodeId) -> Result<NodeId, Fault> {
        self.closures.push(Closure { list, function });
        let braces = self.token().is_bracket('{');
        let body = if braces {
            self.next();
            self.nested(Self::sequence)
        } else {
            self.nested(|p| p.expression(0))
        };
        self.closures.pop();
        let body = body?;
        if braces {
            self.expect_bracket('}')?;
        } else if self.token().is_op(";") {
            return self.unexpected_with(": put the closure in { }");
        }
        Ok(body)
    }

    fn arguments(&mut self, piped: Option<NodeId>) -> Result<Vec<NodeId>, Fault> {
        self.expect_bracket('(')?;
        let mut args: Vec<NodeId> = piped.into_iter().collect();
        let offset = args.len();
        while !self.token().is_bracket(')') {
            if args.len() > offset {
                self.expect_op(",")?;
                if self.token().is_bracket(')') {
                    break;
                }
            }
            args.push(self.nested(|p| p.expression(0))?);
        }
        self.next();
        Ok(args)
    }

    fn array(&mut self) -> Result<NodeId, Fault> {
        let span = self.span();
        self.next();
        let mut items = Vec::new();
        while !self.token().is_bracket(']') {
            if !items.is_empty() {
                self.expect_op(",")?;
                if self.token().is_bracket(']') {
                    break;
                }
            }
            items.push(self.expression(0)?);
        }
        let span = span.to(self.span());
        self.next();
        Ok(self.push(Kind::Array(items), span))
    }

    fn map(&mut self) -> Result<NodeId, Fault> {
        let span = self.span();
        self.next();
        let mut pairs = Vec::new();
        while !self.token().is_bracket('}') {
            if !pairs.is_empty() {
                self.expect_op(",")?;
                if self.token().is_bracket('}') {
                    break;
                }
            }
            let place = self.span();
            let key = match self.token().clone() {
                Token::Str(text) | Token::Word(text) => self.map_key(text, place),
                Token::Int(_) | Token::Float(_) => {
                    let text = self.text();
                    self.map_key(text, place)
                }
                Token::Bracket('(') => self.expression(0)?,
                _ => {
                    return self
                        .unexpected_with(": a map key must be a name, a number, quoted text or in ( )");
                }
            };
            self.expect_op(":")?;
            let value = self.expression(0)?;
            pairs.push((key, value));
        }
        let span = span.to(self.span());
        self.next();
        Ok(self.push(Kind::Map(pairs), span))
    }

    fn map_key(&mut self, text: String, span: Span) -> NodeId {
        self.next();
        self.push(Kind::Str(Arc::from(text)), span)
    }

    /// Parses `.name`, `?.name`, `[index]`, `?.[index]`, `[from:to]` or `.method()` after an operand.
    pub(crate) fn postfix(&mut self, node: NodeId) -> Result<NodeId, Fault> {
        let mut node = node;
        loop {
            let optional = self.token().is_op("?.");
            if optional || self.token().is_op(".") {
                if optional && self.ahead().is_bracket('[') {
                    self.next();
                    node = self.nested(|p| p.index(node, true))?;
                } else {
                    node = self.member(node, optional)?;
                }
            } else if self.token().is_bracket('[') {
                node = self.nested(|p| p.index(node, false))?;
            } else {
                return Ok(node);
            }
        }
    }

    fn member(&mut self, node: NodeId, optional: bool) -> Result<NodeId, Fault> {
        self.next();
        let place = self.span();
        let name = match self.token().clone() {
            Token::Word(name) => name,
            // Words that are operators elsewhere (`in`, `not`, `matches`) are valid names here.
            Token::Op(op) if op.starts_with(|sign: char| sign.is_ascii_alphabetic()) => op,
            _ => return self.unexpected_with(", expected a name after the dot"),
        };
        self.next();
        let (base, chained) = match self.tree.kind(node) {
            Kind::Chain(inner) => (*inner, true),
            _ => (node, false),
        };
        let span = self.tree.span(base).to(place);
        let mut out = if self.token().is_bracket('(') {
            let args = self.arguments(None)?;
            self.push(
                Kind::Method {
                    base,
                    name: Arc::from(name),
                    args,
                    optional,
                },
                span,
            )
        } else {
            let key = self.push(Kind::Str(Arc::from(name)), place);
            self.push(Kind::Member { base, key, optional }, span)
        };
        if chained || optional {
            out = self.push(Kind::Chain(out), span);
        }
        Ok(out)
    }

    fn index(&mut self, base: NodeId, optional: bool) -> Result<NodeId, Fault> {
        let span = self.tree.span(base).to(self.span());
        self.next();
        let mut from = None;
        if !self.token().is_op(":") {
            let first = self.expression(0)?;
            if !self.token().is_op(":") {
                let span = span.to(self.span());
                self.expect_bracket(']')?;
                let node = self.push(
                    Kind::Member {
                        base,
                        key: first,
                        optional,
                    },
                    span,
                );
                return Ok(if optional {
                    self.push(Kind::Chain(node), span)
                } else {
                    node
                });
            }
            from = Some(first);
        }
        self.next();
        let to = if self.token().is_bracket(']') {
            None
        } else {
            Some(self.expression(0)?)
        };
        let span = span.to(self.span());
        self.expect_bracket(']')?;
        Ok(self.push(Kind::Slice { base, from, to }, span))
    }
}

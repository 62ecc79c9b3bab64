//! Parser from tokens to a [`Tree`]: precedence, grouping, `let`, `if`, `?:`.
//!
//! The parser resolves names, so an unknown name is an error even if it would never be evaluated. Recursion
//! is bounded: every bracket, argument, branch and right operand counts as nesting.

use crate::error::{ConditionErrorKind, Fault, Span};
use crate::syntax::ast::{BinaryOp, Kind, NodeId, Tree, UnaryOp};
use crate::syntax::lex::{Lexeme, Token, lex};
use crate::syntax::names::{EnvFunction, Function, unknown_name};
use crate::syntax::precedence::{infix, may_be_negated, unary};

/// Maximum nesting of brackets, arguments and branches.
pub(crate) const MAX_NESTING: usize = 64;
/// Maximum nesting of precedence levels between two brackets.
const FRAMES_PER_NESTING: usize = 3;

/// Parses a whole condition.
pub(crate) fn parse(source: &str) -> Result<Tree, Fault> {
    let mut parser = Parser {
        tokens: lex(source)?,
        at: 0,
        tree: Tree::default(),
        variables: Vec::new(),
        closures: Vec::new(),
        nesting: 0,
        frames: 0,
    };
    let root = parser.sequence()?;
    if !matches!(parser.token(), Token::End) {
        return parser.unexpected();
    }
    parser.tree.root = root.index();
    Ok(parser.tree)
}

pub(crate) struct Variable {
    name: String,
    value: NodeId,
    slot: usize,
}

/// Enclosing closure, which determines the meaning of `#`.
pub(crate) struct Closure {
    pub(crate) list: NodeId,
    pub(crate) function: Function,
}

pub(crate) struct Parser {
    tokens: Vec<Lexeme>,
    at: usize,
    pub(crate) tree: Tree,
    variables: Vec<Variable>,
    pub(crate) closures: Vec<Closure>,
    nesting: usize,
    frames: usize,
}

static END: Token = Token::End;

/// Returns the operator that a token of another language means.
fn meant(token: &Token) -> Option<&'static str> {
    match token {
        Token::Op(text) | Token::Word(text) => match text.as_str() {
            "=" => Some("=="),
            "&" | "AND" => Some("&&"),
            "OR" => Some("||"),
            "IN" => Some("in"),
            _ => None,
        },
        Token::Int(_) | Token::Float(_) | Token::Str(_) | Token::Bracket(_) | Token::End => None,
    }
}

impl Parser {
    pub(crate) fn token(&self) -> &Token {
        self.tokens.get(self.at).map_or(&END, |lexeme| &lexeme.token)
    }

    pub(crate) fn ahead(&self) -> &Token {
        self.tokens.get(self.at + 1).map_or(&END, |lexeme| &lexeme.token)
    }

    pub(crate) fn span(&self) -> Span {
        self.tokens
            .get(self.at)
            .map_or_else(Span::default, |lexeme| lexeme.span)
    }

    /// Returns the current token as written.
    pub(crate) fn text(&self) -> String {
        self.tokens
            .get(self.at)
            .map(|lexeme| lexeme.text.clone())
            .unwrap_or_default()
    }

    pub(crate) fn next(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    pub(crate) fn unexpected<T>(&self) -> Result<T, Fault> {
        self.unexpected_with("")
    }

    pub(crate) fn unexpected_with<T>(&self, remedy: &str) -> Result<T, Fault> {
        let message = match self.token() {
            Token::End => format!("unexpected end of the condition{remedy}"),
            token => match meant(token) {
                Some(meant) => format!("unexpected {}; did you mean `{meant}`?", token.describe()),
                None => format!("unexpected {}{remedy}", token.describe()),
            },
        };
        Err(Fault::syntax(self.span(), message))
    }

    pub(crate) fn expect_op(&mut self, op: &str) -> Result<(), Fault> {
        if !self.token().is_op(op) {
            return self.unexpected_with(&format!(", expected `{op}`"));
        }
        self.next();
        Ok(())
    }

    pub(crate) fn expect_bracket(&mut self, sign: char) -> Result<(), Fault> {
        if !self.token().is_bracket(sign) {
            return self.unexpected_with(&format!(", expected `{sign}`"));
        }
        self.next();
        Ok(())
    }

    pub(crate) fn push(&mut self, kind: Kind, span: Span) -> NodeId {
        self.tree.push(kind, span)
    }

    /// Runs `inside` one level deeper. Excessive depth is a budget error, never a stack overflow.
    pub(crate) fn nested<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.nesting >= MAX_NESTING {
            return Err(too_deep().at(self.span()));
        }
        self.nesting += 1;
        let out = inside(self);
        self.nesting -= 1;
        out
    }

    /// Parses `a; b; c`: all are evaluated, the last is the value.
    pub(crate) fn sequence(&mut self) -> Result<NodeId, Fault> {
        let first = self.expression(0)?;
        let mut nodes = vec![first];
        while self.token().is_op(";") {
            self.next();
            if matches!(self.token(), Token::End) {
                break;
            }
            nodes.push(self.expression(0)?);
        }
        if nodes.len() == 1 {
            return Ok(first);
        }
        let span = self.tree.span(first);
        Ok(self.push(Kind::Sequence(nodes), span))
    }

    pub(crate) fn expression(&mut self, precedence: u16) -> Result<NodeId, Fault> {
        if self.frames >= MAX_NESTING * FRAMES_PER_NESTING {
            return Err(too_deep().at(self.span()));
        }
        self.frames += 1;
        let out = self.expression_inside(precedence);
        self.frames -= 1;
        out
    }

    fn expression_inside(&mut self, precedence: u16) -> Result<NodeId, Fault> {
        if precedence == 0 && self.token().is_op("let") {
            return self.nested(Self::declaration);
        }
        if precedence == 0 && self.token().is_op("if") {
            return self.nested(Self::branches);
        }
        let left = self.prefixed()?;
        let left = self.binary(left, precedence)?;
        if precedence == 0 {
            self.choices(left)
        } else {
            Ok(left)
        }
    }

    /// Parses a row of prefix operators and their operand. A loop, so that `!!!!…` uses no stack.
    fn prefixed(&mut self) -> Result<NodeId, Fault> {
        let mut prefixes = Vec::new();
        while let Some(op) = unary(self.token()) {
            prefixes.push((op, self.span()));
            self.next();
        }
        let mut operand = self.primary()?;
        while let Some((op, span)) = prefixes.pop() {
            operand = self.binary(operand, if op == UnaryOp::Not { 50 } else { 90 })?;
            let span = span.to(self.tree.span(operand));
            operand = self.push(Kind::Unary(op, operand), span);
        }
        Ok(operand)
    }

    fn binary(&mut self, left: NodeId, precedence: u16) -> Result<NodeId, Fault> {
        let mut left = left;
        let mut after_coalesce = false;
        loop {
            let negate = self.token().is_op("not");
            let sign = if negate { self.ahead() } else { self.token() }.clone();
            let Token::Op(sign) = sign else {
                return if negate { self.unexpected() } else { Ok(left) };
            };
            if sign == "|" && !negate {
                if precedence > 0 {
                    return Ok(left);
                }
                left = self.pipe(left)?;
                after_coalesce = false;
                continue;
            }
            let Some((op, own, right_associative)) = infix(&sign) else {
                return if negate { self.unexpected() } else { Ok(left) };
            };
            if negate && !may_be_negated(op) {
                return self.unexpected_with(", expected `not in`, `not matches`, `not contains` …");
            }
            if own < precedence {
                return Ok(left);
            }
            if negate {
                self.next();
            }
            let span = self.span();
            if after_coalesce && op != BinaryOp::Coalesce {
                let message = format!("`??` and `{sign}` cannot be mixed; put one of them in parentheses");
                return Err(Fault::syntax(span, message));
            }
            self.next();
            if op.is_comparison() {
                left = self.comparisons(left, op, span)?;
            } else {
                let right = self.expression(if right_associative { own } else { own + 1 })?;
                let whole = self.tree.span(left).to(self.tree.span(right));
                left = self.push(Kind::Binary(op, left, right), whole);
                if negate {
                    left = self.push(Kind::Unary(UnaryOp::Not, left), whole);
                }
            }
            after_coalesce = op == BinaryOp::Coalesce;
        }
    }

    /// Parses `a < b < c` as `a < b && b < c`.
    fn comparisons(&mut self, left: NodeId, op: BinaryOp, span: Span) -> Result<NodeId, Fault> {
        let (mut left, mut op, mut span) = (left, op, span);
        let mut whole: Option<NodeId> = None;
        loop {
            let right = self.expression(21)?;
            let place = self.tree.span(left).to(self.tree.span(right)).to(span);
            let comparison = self.push(Kind::Binary(op, left, right), place);
            whole = Some(match whole {
                None => comparison,
                Some(so_far) => self.push(Kind::Binary(BinaryOp::And, so_far, comparison), place),
            });
            left = right;
            let following = match self.token() {
                Token::Op(sign) => infix(sign).map(|(op, ..)| op).filter(|op| op.is_comparison()),
                _ => None,
            };
            let Some(next) = following else {
                return Ok(whole.unwrap_or(comparison));
            };
            op = next;
            span = self.span();
            self.next();
        }
    }

    /// Parses `test ? yes : no` and `test ?: no`.
    fn choices(&mut self, test: NodeId) -> Result<NodeId, Fault> {
        let mut test = test;
        while self.token().is_op("?") {
            self.next();
            let yes = if self.token().is_op(":") {
                test
            } else {
                self.nested(|p| p.expression(0))?
            };
            self.expect_op(":")?;
            let no = self.nested(|p| p.expression(0))?;
            let span = self.tree.span(test).to(self.tree.span(no));
            test = self.push(Kind::Choice { test, yes, no }, span);
        }
        Ok(test)
    }

    fn declaration(&mut self) -> Result<NodeId, Fault> {
        let start = self.span();
        self.next();
        let Token::Word(name) = self.token().clone() else {
            return self.unexpected_with(", expected a variable name after `let`");
        };
        let span = self.span();
        self.next();
        self.expect_op("=")?;
        let value = self.expression(0)?;
        self.expect_op(";")?;
        let taken = self.variables.iter().any(|variable| variable.name == name)
            || self
                .name(&name, span)
                .is_ok_and(|kind| !matches!(kind, Kind::Nil));
        if taken {
            return Err(Fault::mismatch(format!("cannot redeclare `{name}`; choose another name")).at(span));
        }
        let slot = self.tree.variables;
        self.tree.variables += 1;
        self.variables.push(Variable { name, value, slot });
        let body = self.sequence();
        self.variables.pop();
        Ok(self.push(
            Kind::Let {
                value,
                slot,
                body: body?,
            },
            start,
        ))
    }

    /// Parses `if test { … } else { … }`.
    fn branches(&mut self) -> Result<NodeId, Fault> {
        let span = self.span();
        self.next();
        let test = self.expression(0)?;
        let yes = self.block()?;
        self.expect_op("else")?;
        let no = if self.token().is_op("if") {
            self.nested(Self::branches)?
        } else {
            self.block()?
        };
        Ok(self.push(Kind::Choice { test, yes, no }, span))
    }

    fn block(&mut self) -> Result<NodeId, Fault> {
        self.expect_bracket('{')?;
        let inside = self.nested(Self::sequence)?;
        self.expect_bracket('}')?;
        Ok(inside)
    }

    /// Resolves a bare name.
    pub(crate) fn name(&self, name: &str, span: Span) -> Result<Kind, Fault> {
        if let Some(variable) = self.variables.iter().rev().find(|variable| variable.name == name) {
            return Ok(Kind::Variable {
                value: variable.value,
                slot: variable.slot,
            });
        }
        match name {
            "result" => return Ok(Kind::Result),
            "response" => return Ok(Kind::Response),
            "job" => return Ok(Kind::Job),
            "exec" => return Ok(Kind::Exec),
            "$env" => return Ok(Kind::Env),
            _ => {}
        }
        if EnvFunction::find(name).is_some() {
            return Ok(Kind::EnvFunction);
        }
        if Function::find(name).is_some() {
            return Ok(Kind::Function);
        }
        Err(Fault::new(ConditionErrorKind::UnknownName, unknown_name(name)).at(span))
    }
}

fn too_deep() -> Fault {
    Fault::budget(format!(
        "nested deeper than {MAX_NESTING} levels; split the condition with `let`"
    ))
}

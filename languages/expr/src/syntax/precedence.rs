//! Operators and their precedence.

use crate::syntax::ast::{BinaryOp, UnaryOp};
use crate::syntax::lex::Token;

/// Returns the prefix operator for a token.
pub(crate) fn unary(token: &Token) -> Option<UnaryOp> {
    let Token::Op(sign) = token else { return None };
    match sign.as_str() {
        "not" | "!" => Some(UnaryOp::Not),
        "-" => Some(UnaryOp::Minus),
        "+" => Some(UnaryOp::Plus),
        _ => None,
    }
}

/// Returns an infix operator, its precedence, and whether it is right-associative.
pub(crate) fn infix(sign: &str) -> Option<(BinaryOp, u16, bool)> {
    let (op, precedence) = match sign {
        "or" | "||" => (BinaryOp::Or, 10),
        "and" | "&&" => (BinaryOp::And, 15),
        "==" => (BinaryOp::Equal, 20),
        "!=" => (BinaryOp::NotEqual, 20),
        "<" => (BinaryOp::Less, 20),
        ">" => (BinaryOp::More, 20),
        "<=" => (BinaryOp::LessOrEqual, 20),
        ">=" => (BinaryOp::MoreOrEqual, 20),
        "in" => (BinaryOp::In, 20),
        "matches" => (BinaryOp::Matches, 20),
        "contains" => (BinaryOp::Contains, 20),
        "startsWith" => (BinaryOp::StartsWith, 20),
        "endsWith" => (BinaryOp::EndsWith, 20),
        ".." => (BinaryOp::Range, 25),
        "+" => (BinaryOp::Add, 30),
        "-" => (BinaryOp::Subtract, 30),
        "*" => (BinaryOp::Multiply, 60),
        "/" => (BinaryOp::Divide, 60),
        "%" => (BinaryOp::Modulo, 60),
        "**" | "^" => (BinaryOp::Power, 100),
        "??" => (BinaryOp::Coalesce, 500),
        _ => return None,
    };
    Some((op, precedence, op == BinaryOp::Power))
}

/// Returns whether `not` may precede the operator (`not in`).
pub(crate) fn may_be_negated(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::In | BinaryOp::Matches | BinaryOp::Contains | BinaryOp::StartsWith | BinaryOp::EndsWith
    )
}

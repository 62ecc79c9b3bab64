//! Parsed condition: a flat list of nodes in evaluation order.
//!
//! Children always precede their parents, so a forward pass over the list visits every operand before its
//! operator. Folding and checking are such passes. They need no recursion, and a long `a || b || c …` uses no
//! stack.

use std::sync::Arc;

use crate::error::Span;
use crate::syntax::names::{EnvFunction, Function};

/// Index of a node in its [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn from_index(index: usize) -> Self {
        NodeId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Not,
    Minus,
    Plus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    More,
    LessOrEqual,
    MoreOrEqual,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Coalesce,
}

impl BinaryOp {
    /// Returns the operator as users write it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::More => ">",
            BinaryOp::LessOrEqual => "<=",
            BinaryOp::MoreOrEqual => ">=",
            BinaryOp::In => "in",
            BinaryOp::Matches => "matches",
            BinaryOp::Contains => "contains",
            BinaryOp::StartsWith => "startsWith",
            BinaryOp::EndsWith => "endsWith",
            BinaryOp::Range => "..",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Modulo => "%",
            BinaryOp::Power => "**",
            BinaryOp::Coalesce => "??",
        }
    }

    pub(crate) fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Less | BinaryOp::More | BinaryOp::LessOrEqual | BinaryOp::MoreOrEqual
        )
    }
}

/// Meaning of `#`, `#index` and `#acc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pointer {
    Item,
    Index,
    Acc,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Arc<str>),
    Result,
    Response,
    Job,
    Exec,
    /// `$env`: all names of the environment as an object.
    Env,
    /// A function such as `asInt`, named without a call.
    EnvFunction,
    /// A function such as `len`, named without a call: nil at run time, as in Go.
    Function,
    /// A `let` variable: the node of its value, and its index among the variables.
    Variable {
        value: NodeId,
        slot: usize,
    },
    /// `#` inside the closure of the call that iterates over `list`.
    Pointer {
        which: Pointer,
        list: NodeId,
    },
    Unary(UnaryOp, NodeId),
    Binary(BinaryOp, NodeId, NodeId),
    /// End of a `?.` chain, which a nil in the chain skips to.
    Chain(NodeId),
    Member {
        base: NodeId,
        key: NodeId,
        optional: bool,
    },
    Slice {
        base: NodeId,
        from: Option<NodeId>,
        to: Option<NodeId>,
    },
    EnvCall(EnvFunction, Vec<NodeId>),
    Call(Function, Vec<NodeId>),
    /// `value.name(args)`; only times and durations have methods.
    Method {
        base: NodeId,
        name: Arc<str>,
        args: Vec<NodeId>,
        optional: bool,
    },
    Let {
        value: NodeId,
        slot: usize,
        body: NodeId,
    },
    Sequence(Vec<NodeId>),
    Choice {
        test: NodeId,
        yes: NodeId,
        no: NodeId,
    },
    Array(Vec<NodeId>),
    Map(Vec<(NodeId, NodeId)>),

    // The following kinds occur only in the folded tree.
    /// Alias of another node's value.
    Same(NodeId),
    /// `x in ["a", "b"]`.
    InWords(NodeId, Arc<[Arc<str>]>),
    /// `filter(list, body)[0]`, `first(filter(…))` and their counterparts for the last element.
    Match {
        list: NodeId,
        body: NodeId,
        backwards: bool,
        required: bool,
    },
    /// `count(…) > n`: the count may stop at `limit`.
    CountAgainst {
        op: BinaryOp,
        count: NodeId,
        limit: i64,
        bound: NodeId,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// All nodes; `root` is the index of the whole condition.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    pub(crate) root: usize,
    pub(crate) variables: usize,
}

const NOTHING: Node = Node {
    kind: Kind::Nil,
    span: Span { start: 0, end: 0 },
};
static NOTHING_NODE: Node = NOTHING;

impl Tree {
    pub(crate) fn push(&mut self, kind: Kind, span: Span) -> NodeId {
        self.nodes.push(Node { kind, span });
        NodeId::from_index(self.nodes.len() - 1)
    }

    pub(crate) fn root(&self) -> NodeId {
        NodeId::from_index(self.root)
    }

    /// Returns a copy in which `rewrite` has replaced nodes.
    pub(crate) fn rewritten<E>(
        &self,
        rewrite: impl Fn(&Tree, NodeId, &Tree) -> Result<Option<Kind>, E>,
    ) -> Result<Tree, (E, NodeId)> {
        let mut out = Tree {
            nodes: Vec::with_capacity(self.nodes.len()),
            ..*self
        };
        for id in self.ids() {
            let node = self.node(id);
            let kind = rewrite(self, id, &out).map_err(|fault| (fault, id))?;
            out.push(kind.unwrap_or_else(|| node.kind.clone()), node.span);
        }
        Ok(out)
    }

    /// Returns a node. Every id comes from [`Tree::push`]; an unknown id returns `nil` instead of panicking.
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&NOTHING_NODE)
    }

    pub(crate) fn kind(&self, id: NodeId) -> &Kind {
        &self.node(id).kind
    }

    pub(crate) fn span(&self, id: NodeId) -> Span {
        self.node(id).span
    }

    /// Returns all ids in evaluation order: operands before operators.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::from_index)
    }

    /// Returns the value of a `let` variable, or the node itself.
    pub(crate) fn behind(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while let Kind::Variable { value, .. } = self.kind(id) {
            id = *value;
        }
        id
    }

    pub(crate) fn is_result(&self, id: NodeId) -> bool {
        matches!(self.kind(self.behind(id)), Kind::Result)
    }
}

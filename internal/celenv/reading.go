// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// reading is what is in an expression.
type reading struct {
	loops     bool // a comprehension, which an interrupt can end
	objects   bool // object or oldObject
	params    bool
	namespace NamespaceUse
}

// NamespaceUse says what an expression looks at of namespaceObject.
type NamespaceUse uint8

// The uses, each more than those before it.
const (
	NamespaceUnused NamespaceUse = iota
	NamespaceLabels              // metadata.name and metadata.labels at most
	NamespaceWhole
)

func readsOf(of *ast.AST) (r reading) {
	ast.PreOrderVisit(ast.NavigateAST(of), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			r.loops = true
		case ast.IdentKind:
			switch strings.TrimPrefix(e.AsIdent(), ".") { // .object is object in no container
			case plugin.ObjectVarName, plugin.OldObjectVarName:
				r.objects = true
			case plugin.ParamsVarName:
				r.params = true
			case plugin.NamespaceVarName:
				r.namespace = max(r.namespace, namespaceUse(e))
			}
		}
	}))
	return r
}

// namespaceUse says what is looked at of the namespaceObject that ident is.
func namespaceUse(ident ast.Expr) NamespaceUse {
	placed, ok := ident.(ast.NavigableExpr)
	if !ok {
		return NamespaceWhole
	}
	metadata, ok := placed.Parent()
	switch {
	case !ok:
		return NamespaceWhole
	case comparedWithNull(metadata):
		return NamespaceLabels
	case selected(metadata) != "metadata":
		return NamespaceWhole
	}
	if below, ok := metadata.Parent(); ok && slices.Contains([]string{"name", "labels"}, selected(below)) {
		return NamespaceLabels
	}
	return NamespaceWhole
}

// selected returns the name of the field that e selects of its operand; "": it does
// something else.
func selected(e ast.NavigableExpr) string {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName()
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() == operators.OptSelect && call.Args()[1].Kind() == ast.LiteralKind {
			name, _ := call.Args()[1].AsLiteral().Value().(string)
			return name
		}
	}
	return ""
}

func comparedWithNull(e ast.NavigableExpr) bool {
	if e.Kind() != ast.CallKind {
		return false
	}
	call := e.AsCall()
	return slices.Contains([]string{operators.Equals, operators.NotEquals}, call.FunctionName()) &&
		slices.ContainsFunc(call.Args(), func(a ast.Expr) bool { return a.Kind() == ast.LiteralKind && a.AsLiteral() == types.NullValue })
}

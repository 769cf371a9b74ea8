// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Input is what Variables are made of. It is borrowed.
type Input struct {
	Review        *codec.Review
	Object        *codec.Object // as mutated so far
	ClusterName   string
	ClusterLabels map[string]string
}

// Variables are what conditions and policies see of one review. A variable is converted when
// the first condition asks for it, and kept for all others: most conditions look
// at the request only, and an object may have 3 MiB. They are safe for concurrent
// use: conditions are evaluated one after the other.
type Variables struct {
	Input // set before the first condition is evaluated

	mu                                  sync.Mutex // guards what follows
	object, oldObject, request, cluster ref.Val    // nil: not asked for yet
	deadline                            time.Time  // of the evaluation under way; zero: none
	interrupted                         bool       // it ended a conversion
	matched                             ref.Val    // the request as policies see it
	// results are of the conditions evaluated so far, kept of policies.
	results map[*Condition]result
	kept    map[any]any
	spent   uint64    // by the predicate under way, in units of CEL
	scanned int       // by all predicates so far, in bytes
	access  *accesses // what the authorizer was asked; nil: nothing
	// unwatched is what predicates have spent since somebody looked at the clock.
	unwatched uint64
}

// SetObject replaces the object; what the other variables were converted to stays.
func (v *Variables) SetObject(object *codec.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Object, v.object = object, nil
	clear(v.results)
	clear(v.kept)
}

// Inherit makes v, which nobody uses yet, the variables of the same review, with what
// they were converted to: objects that both have are converted whole.
func (v *Variables) Inherit(from *Variables) {
	from.mu.Lock()
	defer from.mu.Unlock()
	v.Input = from.Input
	v.object, v.oldObject, v.request, v.cluster, v.matched = whole(from.object), whole(from.oldObject), from.request, from.cluster, from.matched
	v.access = from.access.inherit()
}

// Forget gives up the converted objects, which may be many times as large as their
// text, and are converted again if a condition asks for them once more. What
// conditions came to is kept.
func (v *Variables) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget()
}

func (v *Variables) forget() { v.object, v.oldObject = nil, nil }

// maxUnwatched is what predicates may spend between two looks at the clock, in units of
// CEL: about a millisecond.
const maxUnwatched = 10_000

// inTime notes what a predicate has spent, and reports whether there is time for more.
func (v *Variables) inTime(cost uint64, deadline time.Time) bool {
	if v.unwatched += cost + 1; v.unwatched <= maxUnwatched || deadline.IsZero() {
		return true
	}
	v.unwatched = 0
	return time.Now().Before(deadline)
}

// keep remembers what a condition came to.
func (v *Variables) keep(c *Condition, r result) {
	if v.results == nil {
		v.results = map[*Condition]result{}
	}
	v.results[c] = r
}

var _ cel.Activation = (*Variables)(nil)

// ResolveName returns the value of a variable to the expression that is evaluated. One
// that cannot be converted is an error to every expression that mentions it.
func (v *Variables) ResolveName(name string) (any, bool) {
	switch name {
	case plugin.ObjectVarName:
		return once(&v.object, func() ref.Val { return v.objectValue(v.Object.Raw) }), true
	case plugin.OldObjectVarName:
		return once(&v.oldObject, func() ref.Val { return v.objectValue(v.Review.OldObject.Raw) }), true
	case plugin.RequestVarName:
		return v.requestValue(), true
	case plugin.NamespaceVarName:
		return types.NullValue, true // declared, and null, in matchConditions of kube-apiserver too
	case clusterVariable:
		return once(&v.cluster, v.clusterValue), true
	case plugin.AuthorizerVarName:
		return v.authorizerValue(), true
	case plugin.RequestResourceAuthorizerVarName:
		return v.requestResourceValue(), true
	}
	return nil, false
}

// Parent returns nil: there is no enclosing scope.
func (v *Variables) Parent() cel.Activation { return nil }

func once(kept *ref.Val, convert func() ref.Val) ref.Val {
	if *kept == nil {
		*kept = convert()
	}
	return *kept
}

// objectValue decodes an object, until the deadline.
func (v *Variables) objectValue(raw []byte) ref.Val {
	if raw == nil {
		return types.NullValue
	}
	typed := isTyped(v.Review.Kind.Group)
	c := converter{deadline: v.deadline, piece: usualPiece}
	if typed {
		c.of = v
	}
	object, err := c.value(raw)
	switch {
	case err != nil:
		return v.unprepared(err)
	case typed:
		return object
	}
	return types.DefaultTypeAdapter.NativeToValue(nativeOf(object))
}

// unprepared is the value of what cannot be converted.
func (v *Variables) unprepared(err error) ref.Val {
	v.interrupted = v.interrupted || errors.Is(err, ErrInterrupted)
	return types.WrapErr(fmt.Errorf("failed to prepare the object for evaluation: %w", err))
}

func (v *Variables) requestValue() ref.Val {
	return once(&v.request, func() ref.Val { return common.SchemalessTypedToVal(requestOf(v.Review)) })
}

func (v *Variables) clusterValue() ref.Val {
	labels := v.ClusterLabels
	if labels == nil {
		labels = map[string]string{}
	}
	return types.DefaultTypeAdapter.NativeToValue(map[string]any{"name": v.ClusterName, "labels": labels})
}

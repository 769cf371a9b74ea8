// SPDX-License-Identifier: Apache-2.0

package codec

import "strconv"

// shape is the type of a value of which nothing but its type matters:
// kube-apiserver fails to decode an answer where it is another. Null fits all.
type shape struct {
	name string // for messages
	kind kind
	// fields are the members of an object that have a type; names are exact.
	fields map[string]*shape
	each   *shape // element of a list, or value of a dictionary
}

type kind uint8

const (
	aString kind = iota
	aBool
	anInteger // of 64 bits
	anObject
	aDictionary
	aList
)

// must says what a value of each kind must be.
var must = [...]string{
	aString: "a string", aBool: "true or false", anInteger: "an integer", anObject: "an object", aDictionary: "a map", aList: "an array",
}

// The shapes of admission.k8s.io's AdmissionRequest, and of what is not read of a
// metav1.Status.
var (
	requestShape = shape{name: "request", kind: anObject, fields: map[string]*shape{
		"uid":                texts("request.uid"),
		"kind":               names3("request.kind", "kind"),
		"resource":           names3("request.resource", "resource"),
		"subResource":        texts("request.subResource"),
		"requestKind":        names3("request.requestKind", "kind"),
		"requestResource":    names3("request.requestResource", "resource"),
		"requestSubResource": texts("request.requestSubResource"),
		"name":               texts("request.name"),
		"namespace":          texts("request.namespace"),
		"operation":          texts("request.operation"),
		"userInfo": {name: "request.userInfo", kind: anObject, fields: map[string]*shape{
			"username": texts("request.userInfo.username"),
			"uid":      texts("request.userInfo.uid"),
			"groups":   listOfTexts("request.userInfo.groups"),
			"extra":    {name: "request.userInfo.extra", kind: aDictionary, each: listOfTexts("a value of request.userInfo.extra")},
		}},
		"dryRun": {name: "request.dryRun", kind: aBool},
	}}
	metadataShape = shape{name: "status.metadata", kind: anObject, fields: map[string]*shape{
		"selfLink":           texts("status.metadata.selfLink"),
		"resourceVersion":    texts("status.metadata.resourceVersion"),
		"continue":           texts("status.metadata.continue"),
		"remainingItemCount": {name: "status.metadata.remainingItemCount", kind: anInteger},
		"shardInfo": {name: "status.metadata.shardInfo", kind: anObject, fields: map[string]*shape{
			"selector": texts("status.metadata.shardInfo.selector"),
		}},
	}}
)

func texts(name string) *shape { return &shape{name: name, kind: aString} }

func listOfTexts(name string) *shape {
	return &shape{name: name, kind: aList, each: texts("an element of " + name)}
}

// names3 is a GroupVersionKind or a GroupVersionResource.
func names3(name, last string) *shape {
	return &shape{name: name, kind: anObject, fields: map[string]*shape{
		"group": texts(name + ".group"), "version": texts(name + ".version"), last: texts(name + "." + last),
	}}
}

// shaped returns what checks the shape of a value of an answer.
func shaped(s *shape) func(jsonAnswer) bool {
	return func(a jsonAnswer) bool { return s.check(&a.lenient) }
}

// check consumes the next value and records if it is not of the shape.
func (s *shape) check(l *lenient) bool {
	c := l.Next()
	switch {
	case c == 'n':
		return l.Skip()
	case s.kind == aString && c == '"', s.kind == aBool && (c == 't' || c == 'f'):
		return l.Skip()
	case s.kind == anInteger:
		return s.checkInteger(l)
	case s.kind == aList && c == '[':
		return l.elements(s.name, must[s.kind], func() bool { return s.each.check(l) })
	case (s.kind == anObject || s.kind == aDictionary) && c == '{':
		return s.checkMembers(l)
	}
	return l.wrongType(s.name, must[s.kind])
}

func (s *shape) checkInteger(l *lenient) bool {
	start := l.Pos
	if !l.Skip() {
		return false
	}
	if _, err := strconv.ParseInt(string(l.Data[start:l.Pos]), 10, 64); err != nil {
		l.found(s.name + " must be " + must[s.kind])
	}
	return true
}

// checkMembers checks the members of the object at pos whose type matters.
func (s *shape) checkMembers(l *lenient) bool {
	return l.Each(func(key []byte) bool {
		member := s.each
		if s.kind == anObject {
			member = s.fields[string(key)]
		}
		if member == nil {
			return l.Skip()
		}
		return member.check(l)
	})
}

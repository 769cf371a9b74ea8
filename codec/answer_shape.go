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
	statusKindShape    = *texts("status.kind")
	statusVersionShape = *texts("status.apiVersion")
	statusStatusShape  = *texts("status.status")
	detailsNameShape   = *texts("status.details.name")
	detailsGroupShape  = *texts("status.details.group")
	detailsKindShape   = *texts("status.details.kind")
	detailsUIDShape    = *texts("status.details.uid")
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

// check consumes the next value and records if it is not of the shape s.
func (a *answer) check(s *shape) bool {
	c := a.Next()
	switch {
	case c == 'n':
		return a.Skip()
	case s.kind == aString && c == '"', s.kind == aBool && (c == 't' || c == 'f'):
		return a.Skip()
	case s.kind == anInteger:
		return a.checkInteger(s)
	case s.kind == aList && c == '[':
		return a.elements(s.name, must[s.kind], func() bool { return a.check(s.each) })
	case (s.kind == anObject || s.kind == aDictionary) && c == '{':
		return a.checkMembers(s)
	}
	return a.wrongType(s.name, must[s.kind])
}

func (a *answer) checkInteger(s *shape) bool {
	start := a.Pos
	if !a.Skip() {
		return false
	}
	if _, err := strconv.ParseInt(string(a.Data[start:a.Pos]), 10, 64); err != nil {
		a.found(s.name + " must be " + must[s.kind])
	}
	return true
}

// checkMembers checks the members of the object at pos whose type matters.
func (a *answer) checkMembers(s *shape) bool {
	if !a.Enter() {
		return false
	}
	first := true
	for ; a.More(first, '}'); first = false {
		key, ok := a.Key()
		if !ok {
			return false
		}
		member := s.each
		if s.kind == anObject {
			member = s.fields[string(key)]
		}
		read := a.Skip
		if member != nil {
			read = func() bool { return a.check(member) }
		}
		if !read() {
			return false
		}
	}
	return a.Fault == ""
}

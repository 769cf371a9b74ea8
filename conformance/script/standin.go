// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Reading is how a webhook's answers are read.
type Reading struct {
	Mutating bool
	V1beta1  bool // the webhook's review version
	// APIServer is compatibility: APIServer of the webhook's binding.
	APIServer bool
}

// StandIn returns the script that says to kube-apiserver what s says to the
// dispatcher, and the row of the meant difference; s itself and no row where both
// read it alike.
func (s Script) StandIn(r Reading) (Script, string) {
	for _, d := range differing {
		if r.APIServer && !d.always {
			continue
		}
		if in, ok := d.standIn(s, r); ok {
			return in, d.row
		}
	}
	return s, ""
}

// difference is a way in which the dispatcher reads an answer more strictly.
type difference struct {
	row     string
	always  bool // whatever the compatibility
	standIn func(Script, Reading) (Script, bool)
}

// differing are all of them; the first that holds counts.
var differing = []difference{
	{"C11", true, failing(Redirect)},
	{"C12", true, failing(FiveMegabytes)},
	{"C5", false, forged},
	{"C6", false, refusing(CaseVariant)},
	{"C9", false, unclear},
	{"C9", false, brokenDenial},
	{"C3", false, misaddressedDenial},
	{"C28", false, misaddressedBeta},
	{"C13", false, validatingPatch},
	{"C14", false, brokenPatchOfDenial},
	{"C14", true, brokenPatchOfAllow},
	{"C18", true, refusedPatch(IdentityPatch)},
	{"C19", true, refusedPatch(PatchBomb)},
	{"C21", false, codeBeyond},
}

func failing(forms ...Form) func(Script, Reading) (Script, bool) {
	return func(s Script, _ Reading) (Script, bool) { return failure, slices.Contains(forms, s.Form) }
}

// unclear is what readers read differently: a failed call, unless it denies.
func unclear(s Script, _ Reading) (Script, bool) {
	if s.Allowed {
		return failure, s.Form == InvalidUTF8
	}
	return rejection(500), s.Form == InvalidUTF8
}

// brokenDenial is a denial that can be seen in what is not JSON.
func brokenDenial(s Script, r Reading) (Script, bool) {
	if s.Form != Truncated && s.Form != Trailing {
		return s, false
	}
	c := call{apiVersion: "admission.k8s.io/v1", uid: strings.Repeat("0", 36)}
	if r.V1beta1 {
		c.apiVersion += "beta1"
	}
	return rejection(500), bytes.Contains(s.body(c), []byte(`"allowed":false`))
}

func refusing(forms ...Form) func(Script, Reading) (Script, bool) {
	return func(s Script, _ Reading) (Script, bool) { return rejection(500), slices.Contains(forms, s.Form) }
}

func forged(s Script, _ Reading) (Script, bool) {
	switch s.Form {
	case AllowedTwice:
		return failure, true
	case ResponseTwice:
		if s.Allowed {
			return failure, true
		}
		return rejection(500), true
	case AllowedThenNot, NotThenAllowed:
		return rejection(500), true
	}
	return s, false
}

func (f Form) misaddressed() bool {
	return slices.Contains([]Form{WrongUID, NoUID, WrongKind, WrongVersion, OtherVersion}, f)
}

func misaddressedDenial(s Script, r Reading) (Script, bool) {
	return rejection(500), s.Form.misaddressed() && !s.Allowed && !r.V1beta1
}

func misaddressedBeta(s Script, r Reading) (Script, bool) {
	if !r.V1beta1 || !s.Form.misaddressed() {
		return s, false
	}
	if s.Allowed {
		return failure, true
	}
	return rejection(500), true
}

// ofPatch tells whether what is odd about an answer is its patch or patch type.
func (f Form) ofPatch() bool {
	return slices.Contains([]Form{BadBase64, BadPatch, TypeNoPatch, OtherPatchType, EmptyPatch,
		NullPatch, IdentityPatch, PatchBomb, UnknownOperation}, f)
}

// hasPatch tells whether an answer has a patch or a patch type.
func (s Script) hasPatch() bool { return s.Patch != nil || s.Form.ofPatch() }

func validatingPatch(s Script, r Reading) (Script, bool) {
	if r.Mutating || !s.hasPatch() || r.V1beta1 && s.Form == TypeNoPatch { // of which v1beta1 knows nothing
		return s, false
	}
	if s.Allowed {
		return failure, true
	}
	return rejection(500), true
}

func brokenPatchOfDenial(s Script, r Reading) (Script, bool) {
	if !r.Mutating || s.Allowed {
		return s, false
	}
	broken := slices.Contains([]Form{BadBase64, PatchNoType, TypeNoPatch}, s.Form)
	s.Form, s.Patch = "", nil
	return s, broken
}

// brokenPatchOfAllow is a failed call for both, of which the API server passes on
// warnings and annotations.
func brokenPatchOfAllow(s Script, r Reading) (Script, bool) {
	return failure, r.Mutating && s.Allowed && (s.Form == BadPatch || s.Form == OtherPatchType && !r.V1beta1)
}

func refusedPatch(form Form) func(Script, Reading) (Script, bool) {
	return func(s Script, r Reading) (Script, bool) {
		return s.Refused(), s.Form == form && s.Allowed && r.Mutating
	}
}

// Refused is s with a patch that the API server refuses whatever the failure policy:
// it does not apply.
func (s Script) Refused() Script {
	if s.Form.ofPatch() {
		s.Form = ""
	}
	s.Patch = json.RawMessage(`[{"op":"remove","path":"/none/of/this"}]`)
	return s
}

// Patches reports whether the API server comes to apply a patch of a mutating
// webhook.
func (s Script) Patches(r Reading) bool {
	if !r.V1beta1 && (s.Form.misaddressed() || s.Form == PatchNoType) {
		return false
	}
	never := append(Plain(), Truncated, Trailing, Hang, BadBase64, BadPatch, TypeNoPatch, OtherPatchType, EmptyPatch, NullPatch, AllowedAbsent, AllowedNull)
	return s.Allowed && s.hasPatch() && !slices.Contains(never, s.Form)
}

func codeBeyond(s Script, _ Reading) (Script, bool) {
	beyond := !s.Allowed && s.Form == CodeBeyond
	s.Form, s.Code = "", 400
	return s, beyond
}

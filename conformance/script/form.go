// SPDX-License-Identifier: Apache-2.0

package script

import "slices"

// Form is a way in which an answer is not a proper one. The rows are those of the
// dispatcher's contract about answers.
type Form string

// Forms that are failed calls for everybody.
const (
	Status400    Form = "C11 status 400 with a review"
	Status404    Form = "C11 status 404"
	Status500    Form = "C11 status 500"
	Status503    Form = "C11 status 503 with a review"
	Status204    Form = "C11 status 204"
	EmptyBody    Form = "C11 empty body"
	NoLocation   Form = "C11 status 302 without a location"
	Garbage      Form = "C9 not JSON"
	NoResponse   Form = "C4 response absent"
	NullResponse Form = "C4 response null"
	WrongAllowed Form = "C7 allowed is a string"
	Close        Form = "F12 connection closed without an answer"
	Hang         Form = "F5 no answer"
	BadBase64    Form = "C14 patch is not base64"
	BadPatch     Form = "C14 patch is not decodable"
)

// Forms that are failed calls for the API server, and here too unless they deny
// (C9).
const (
	Truncated Form = "C9 truncated"
	Trailing  Form = "C9 trailing bytes"
)

// Forms that are failed calls for a v1 webhook; kube-apiserver does not look at
// them in v1beta1 (C28), and a denial counts here all the same (C3).
const (
	WrongUID     Form = "C2 uid of another request"
	NoUID        Form = "C2 uid absent"
	WrongKind    Form = "C2 kind Status"
	WrongVersion Form = "C2 version unknown"
	OtherVersion Form = "C2 the other review version"
)

// Forms about patches.
const (
	PatchNoType    Form = "C14 patch without a type"
	TypeNoPatch    Form = "C14 type without a patch"
	OtherPatchType Form = "C14 another patch type"
	EmptyPatch     Form = "C15 empty patch with its type"
	NullPatch      Form = "C15 patch of null with its type"
	IdentityPatch  Form = "C18 patch of the identity"
	PatchBomb      Form = "C19 patch of 2,001 operations"
)

// Forms that only the dispatcher refuses.
const (
	AllowedTwice     Form = "C5 allowed true twice"
	AllowedThenNot   Form = "C5 allowed true, then false"
	NotThenAllowed   Form = "C5 allowed false, then true"
	ResponseTwice    Form = "C5 response twice"
	CaseVariant      Form = "C6 Allowed instead of allowed"
	InvalidUTF8      Form = "C9 invalid UTF-8"
	YAML             Form = "C10 YAML"
	Status201        Form = "C10 status 201 with a review"
	GZIP             Form = "C10 gzip that was not asked for"
	AllowedAbsent    Form = "C8 allowed absent"
	AllowedNull      Form = "C8 allowed null"
	Redirect         Form = "C11 redirect to a webhook that allows"
	FiveMegabytes    Form = "C12 more than 4 MiB"
	UnknownOperation Form = "C17 unknown operation"
	CodeBeyond       Form = "C21 code of 600 and above"
	ManyWarnings     Form = "C24 a thousand warnings"
	ManyAnnotations  Form = "C25 annotations that do not fit"
)

// plain are the Forms that the API server and the dispatcher read alike, whatever
// the webhook.
var plain = []Form{
	Status400, Status404, Status500, Status503, Status204, EmptyBody, NoLocation, Garbage,
	NoResponse, NullResponse, WrongAllowed, Close,
}

// Plain returns the Forms that both read alike.
func Plain() []Form { return slices.Clone(plain) }

// Forms returns all Forms.
func Forms() []Form {
	return append(Plain(), Truncated, Trailing, Hang, BadBase64, BadPatch, WrongUID, NoUID, WrongKind, WrongVersion, OtherVersion,
		PatchNoType, TypeNoPatch, OtherPatchType, EmptyPatch, NullPatch, IdentityPatch, PatchBomb,
		AllowedTwice, AllowedThenNot, NotThenAllowed, ResponseTwice, CaseVariant, InvalidUTF8, YAML, Status201, GZIP,
		AllowedAbsent, AllowedNull, Redirect, FiveMegabytes, UnknownOperation, CodeBeyond, ManyWarnings, ManyAnnotations)
}

// OfPatch reports whether the Form is about the patch of a mutating webhook that
// allows.
func (f Form) OfPatch() bool {
	return slices.Contains([]Form{BadPatch, OtherPatchType, EmptyPatch, NullPatch, IdentityPatch, PatchBomb, UnknownOperation}, f)
}

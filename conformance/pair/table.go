// SPDX-License-Identifier: Apache-2.0

package pair

// Row is one meant difference between what the API server decides by itself and
// what it decides through the dispatcher.
type Row struct {
	// ID is the row of the dispatcher's contract, where there is one.
	ID string
	// What differs, and Why.
	What, Why string
}

// The rows that are about how a decision is told, not about which it is.
const (
	Causes      = "causes"
	Merged      = "merged"
	FirstRefuse = "B17"
	FailOpen    = "A!"
	RetryAfter  = "C22"
	Texts       = "C23"
	Warnings    = "C24"
	Annotations = "C25"
	Convert     = "convert"
	Name        = "name"
	Paths       = "paths"
)

// Table holds all meant differences. Any other one is a defect.
var Table = []Row{
	{"B17", "a denial that needs no call (a dry run that is not supported, a resource that cannot be converted) comes before any call", "no answer can change it"},
	{"C3", "a denial in an answer with another uid, kind or version stands", "a deny is not lost to a formality"},
	{"C5", "`allowed` or `response` twice is no answer, and a denial if any copy says so", "where JSON readers disagree a verdict can be forged"},
	{"C6", "`Allowed` for `allowed` is a denial", "where JSON readers disagree a verdict can be forged"},
	{"C9", "an answer that is not valid UTF-8 is no answer, and a denial in it, or in one that is not JSON, stands", "where JSON readers disagree a verdict can be forged, and a deny is not lost to a formality"},
	{"C11", "a redirect is never followed", "the target would see the object"},
	{"C12", "an answer of more than 4 MiB is no answer", "one webhook must not exhaust what many clusters share"},
	{"C13", "a v1beta1 validating webhook that answers with a patch gave no answer, and its denial stands", "the patch would be dropped in silence"},
	{"C14", "next to a broken patch a denial stands, and an allow is no answer of which warnings could be passed on", "a deny is not lost to a formality"},
	{"C16", "a patch on CONNECT is refused", "the object is the options of a request, and nobody's to change"},
	{"C18", "a patch that changes the object's identity is refused", "the webhooks after it would judge another object than the user sent"},
	{"C19", "a patch of more than 2,000 operations is refused", "one webhook must not exhaust what many clusters share"},
	{"C21", "a denial with a code of 600 and above has the code 400", "clients cannot read such a code"},
	{"C22", "retryAfterSeconds is at most 30", "a webhook must not park a cluster's clients"},
	{"C23", "a webhook's message is cut at 4,096 runes, its control characters but line feeds are replaced, its further lines are indented", "one webhook must not hide the denials of others, or write them"},
	{"C24", "at most 16 warnings of 256 runes per webhook, control characters replaced", "one webhook must not hide the warnings of others"},
	{"C25", "at most 32 audit annotations of 1 KiB per webhook, keys of at most 63 characters, the first value of a key", "the API server drops what does not fit, without a trace"},
	{"C28", "v1beta1 answers are held to uid, kind and version as well", "a stale answer must not count"},
	{"A!", "a call that failed open, or a webhook that was skipped because a condition failed, is a warning", "a failure is never silent"},
	{"causes", "a failed call is 503 or 504 where that is what it was, not always 500", "the code says whether trying again helps"},
	{"convert", "a webhook that lists the resource in other versions only is a failed call", "the dispatcher cannot convert, and does not skip in silence"},
	{"name", "a namespaceSelector on kubernetes.io/metadata.name alone is decided for an unknown namespace too", "that label is always known"},
	{"paths", "of denials on several paths of the registration one path's are told", "the API server shows whichever was first to arrive"},
	{"merged", "all denials are told, in configuration order, and the code is that of the first", "the API server shows whichever was first to arrive"},
}

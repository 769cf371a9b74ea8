// SPDX-License-Identifier: Apache-2.0

package pair

// Row is one meant difference between what the API server decides by itself and
// what it decides through the dispatcher.
type Row struct {
	// ID is the row of the dispatcher's contract, where there is one.
	ID string
	// What differs, and Why.
	What, Why string
	// Rare: one in ten thousand pairs; no run need reach it.
	Rare bool
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
	Again       = "again"
)

// Table holds all meant differences. Any other one is a defect.
var Table = []Row{
	{ID: "B17", What: "a denial that needs no call (a dry run that is not supported, a resource that cannot be converted) comes before any call", Why: "no answer can change it"},
	{ID: "C3", What: "a denial in an answer with another uid, kind or version stands", Why: "a deny is not lost to a formality"},
	{ID: "C5", What: "`allowed` or `response` twice is no answer, and a denial if any copy says so", Why: "where JSON readers disagree a verdict can be forged"},
	{ID: "C6", What: "`Allowed` for `allowed` is a denial", Why: "where JSON readers disagree a verdict can be forged"},
	{ID: "C9", What: "an answer that is not valid UTF-8 is no answer, and a denial in it, or in one that is not JSON, stands", Why: "where JSON readers disagree a verdict can be forged, and a deny is not lost to a formality"},
	{ID: "C11", What: "a redirect is never followed", Why: "the target would see the object"},
	{ID: "C12", What: "an answer of more than 4 MiB is no answer", Why: "one webhook must not exhaust what many clusters share"},
	{ID: "C13", What: "a v1beta1 validating webhook that answers with a patch gave no answer, and its denial stands", Why: "the patch would be dropped in silence"},
	{ID: "C14", What: "next to a broken patch a denial stands, and an allow is no answer of which warnings could be passed on", Why: "a deny is not lost to a formality"},
	{ID: "C16", What: "a patch on CONNECT is refused", Why: "the object is the options of a request, and nobody's to change"},
	{ID: "C18", What: "a patch that changes the object's identity is refused", Why: "the webhooks after it would judge another object than the user sent"},
	{ID: "C19", What: "a patch of more than 2,000 operations is refused", Why: "one webhook must not exhaust what many clusters share"},
	{ID: "C21", What: "a denial with a code of 600 and above has the code 400", Why: "clients cannot read such a code"},
	{ID: "C22", What: "retryAfterSeconds is at most 30", Why: "a webhook must not park a cluster's clients"},
	{ID: "C23", What: "a webhook's message is cut at 4,096 runes, its control characters but line feeds are replaced, its further lines are indented", Why: "one webhook must not hide the denials of others, or write them"},
	{ID: "C24", What: "at most 16 warnings of 256 runes per webhook, control characters replaced", Why: "one webhook must not hide the warnings of others"},
	{ID: "C25", What: "at most 32 audit annotations of 1 KiB per webhook, keys of at most 63 characters, the first value of a key", Why: "the API server drops what does not fit, without a trace"},
	{ID: "C28", What: "v1beta1 answers are held to uid, kind and version as well", Why: "a stale answer must not count"},
	{ID: "A!", What: "a call that failed open, or a webhook that was skipped because a condition failed, is a warning", Why: "a failure is never silent"},
	{ID: "causes", What: "a failed call is 503 or 504 where that is what it was, not always 500", Why: "the code says whether trying again helps"},
	{ID: "convert", What: "a webhook that lists the resource in other versions only is a failed call", Why: "the dispatcher cannot convert, and does not skip in silence"},
	{ID: "name", What: "a namespaceSelector on kubernetes.io/metadata.name alone is decided for an unknown namespace too", Why: "that label is always known"},
	{ID: "again", What: "a webhook is called in a second round where a patch has changed a value and changed it back", Why: "what a patch changes is told by its operations: comparing large objects costs too much", Rare: true},
	{ID: "paths", What: "of denials on several paths of the registration one path's are told", Why: "the API server shows whichever was first to arrive"},
	{ID: "merged", What: "all denials are told, in configuration order, and the code is that of the first", Why: "the API server shows whichever was first to arrive"},
}

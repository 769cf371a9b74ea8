// SPDX-License-Identifier: Apache-2.0

// Package status says how the process is: the document behind the status page,
// /api/v1/status and `dispatcher status`. It holds nothing from inside an object
// and nobody's name.
package status

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Status is the process as of Now. Lists are in a fixed order and never null.
type Status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`

	Ready        bool               `json:"ready"`
	Unready      []string           `json:"unready"`
	Notices      []Notice           `json:"notices"`
	Snapshot     *Snapshot          `json:"snapshot"`
	Problems     []manifest.Problem `json:"problems"`
	Warnings     []manifest.Problem `json:"warnings"`
	Pending      []Pending          `json:"pending"`
	Draining     []Draining         `json:"draining"`
	Clusters     []Cluster          `json:"clusters"`
	Chains       []Chain            `json:"chains"`
	Webhooks     []Webhook          `json:"webhooks"`
	Targets      []Target           `json:"targets"`
	Denials      []Decision         `json:"denials"`
	FailOpens    []Decision         `json:"failOpens"`
	Sheds        []Decision         `json:"sheds"`
	History      []Change           `json:"history"`
	Certificates []Certificate      `json:"certificates"`
	// Mirror is how the mirror is that the configuration comes from; nil: it does not.
	Mirror *mirrorstatus.Mirror `json:"mirror"`
}

// Snapshot names what is served.
type Snapshot struct {
	Hash  string    `json:"hash"` // hex; equal on replicas that serve the same
	Short string    `json:"short"`
	Since time.Time `json:"since"`
}

// Pending is a webhook that does not take part yet.
type Pending struct {
	Webhook  string `json:"webhook"` // configuration/name
	URL      string `json:"url"`
	Previous bool   `json:"previousServes"`
	Reason   string `json:"reason"`
}

// Draining is a Target that has left and still has calls under way.
type Draining struct {
	URL         string `json:"url"`
	Outstanding int    `json:"outstanding"`
}

// Cluster is one caller. The counts are of admissions since the start.
type Cluster struct {
	Name           string            `json:"name"`
	Labels         map[string]string `json:"labels"`
	Anonymous      bool              `json:"anonymous"`
	TimeoutSeconds float64           `json:"timeoutSeconds"` // 0: not told
	Chain          int               `json:"chain"`          // index in Status.Chains
	Counts         Counts            `json:"counts"`
	Namespaces     *Namespaces       `json:"namespaces"` // nil: no kubeconfigFile
	Authorizer     *Authorizer       `json:"authorizer"` // nil: nobody asks it
	Objects        []Objects         `json:"objects"`    // of the resources that plugins and policies read
	// KubernetesVersion is as the Cluster or its API says; "": not known.
	KubernetesVersion string `json:"kubernetesVersion"`
}

// Counts are admissions since the start. One may be in several.
type Counts struct {
	Admissions int64 `json:"admissions"`
	Denied     int64 `json:"denied"`
	FailedOpen int64 `json:"failedOpen"` // allowed
	// DeniedUnavailable are denied, while a call failed that would not have blocked them.
	DeniedUnavailable int64 `json:"deniedUnavailable"`
	Shed              int64 `json:"shed"`
	Bypassed          int64 `json:"bypassed"`
	// Outdated are those on a path of an older registration.
	Outdated     int64     `json:"outdated"`
	Last         time.Time `json:"last,omitzero"` // zero: none yet
	LastOutdated time.Time `json:"lastOutdated,omitzero"`
}

// Namespaces is how the namespaces of a cluster are known.
type Namespaces struct {
	Cached   int       `json:"cached"`
	Synced   bool      `json:"synced"`
	Stale    bool      `json:"stale"`
	Current  time.Time `json:"current,omitzero"`
	LiveGets uint64    `json:"liveGets"`
	Error    string    `json:"error,omitempty"`
	// Credential is what is wrong with the files of the credential.
	Credential string `json:"credential,omitempty"`
}

// Authorizer is how the authorizer of a cluster is asked. Counts are since its kubeconfig
// was loaded.
type Authorizer struct {
	Answered uint64 `json:"answered"` // by a SubjectAccessReview
	Cached   uint64 `json:"cached"`
	Failed   uint64 `json:"failed"`
	Shed     uint64 `json:"shed"`
	Waiting  int    `json:"waiting"`
	Error    string `json:"error,omitempty"`
}

// Objects is how the objects of a resource of a cluster are known.
type Objects struct {
	Resource string    `json:"resource"` // with its version and group
	Cached   int       `json:"cached"`   // that are known, but for those of Unkept
	Bytes    int       `json:"bytes"`    // that they count as
	Unkept   int       `json:"unkept"`   // that are known by name only: each is asked for
	Partial  bool      `json:"partial"`  // there are more, of which nothing is known
	Synced   bool      `json:"synced"`
	Stale    bool      `json:"stale"`
	Current  time.Time `json:"current,omitzero"`
	LiveGets uint64    `json:"liveGets"`
	Error    string    `json:"error,omitempty"`
}

// Chain is the webhooks of clusters that share them all, by ID, in the order in
// which they take part.
type Chain struct {
	Mutating   []string `json:"mutating"`
	Validating []string `json:"validating"`
}

// Decision is one admission in which webhooks did not simply allow. Webhooks are
// those that the list is about.
type Decision struct {
	Time        time.Time  `json:"time"`
	UID         string     `json:"uid"`
	Cluster     string     `json:"cluster"`
	Phase       string     `json:"phase"`
	Operation   string     `json:"operation"`
	Group       string     `json:"group"`
	Version     string     `json:"version"`
	Resource    string     `json:"resource"`
	Subresource string     `json:"subresource,omitempty"`
	Namespace   string     `json:"namespace,omitempty"`
	Name        string     `json:"name,omitempty"`
	DryRun      bool       `json:"dryRun,omitempty"`
	Snapshot    string     `json:"snapshot"`
	Decision    string     `json:"decision"` // in the words of the metrics
	Allowed     bool       `json:"allowed"`
	Code        int32      `json:"code,omitempty"` // of a denial
	Webhooks    []Involved `json:"webhooks"`
	// Unavailable are, of a denial, webhooks whose calls failed and would not have blocked.
	Unavailable []Involved `json:"unavailable"`
}

// Involved is one webhook's part of a Decision.
type Involved struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Result        string `json:"result"`
	Cause         string `json:"cause,omitempty"`
	FailOpenRule  string `json:"failOpenRule,omitempty"`
}

// String is configuration/webhook.
func (i Involved) String() string { return i.Configuration + "/" + i.Webhook }

// Change is one change of the configuration, served or refused.
type Change struct {
	Time     time.Time          `json:"time"`
	Snapshot string             `json:"snapshot"` // short; of what is served from then on
	First    bool               `json:"first"`    // there was none before: nothing is added to it
	Refused  bool               `json:"refused"`
	Problems []manifest.Problem `json:"problems"`
	Clusters int                `json:"clusters"`
	Webhooks int                `json:"webhooks"`
	Pending  int                `json:"pending"`
	Added    []string           `json:"added"` // webhooks as configuration/name, clusters as Cluster/name
	Removed  []string           `json:"removed"`
	Changed  []string           `json:"changed"`
}

// Certificate is one certificate of a listener.
type Certificate struct {
	Role      string    `json:"role"` // such as "admission serving"
	File      string    `json:"file"`
	Subject   string    `json:"subject"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// Refused is why the files, as they are now, are not what is used.
	Refused string `json:"refused,omitempty"`
}

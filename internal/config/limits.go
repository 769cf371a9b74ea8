// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// Limits bound what one caller or webhook can make the process hold.
type Limits struct {
	// RequestBytes bounds a request's body, also after decompression, in bytes.
	// Default: 37748736 (36 MiB). kube-apiserver writes two objects of up to 3 MiB, and
	// each "<", ">" and "&" in them as six bytes. Danger: a review above it is denied
	// with 413, so objects that padding makes that large cannot be changed.
	RequestBytes int `json:"requestBytes,omitempty"`
	// BodyBytes bounds the bodies of all requests that are being read, decompressed,
	// or held for webhooks that are still called, in bytes; at least four times
	// requestBytes. Default: 536870912 (512 MiB). One cluster gets at most half of it,
	// and never what another one needs to be heard. Danger: where a cluster's share is
	// used up, its reviews are denied with 429; memory, twice as much before garbage is
	// collected.
	BodyBytes int `json:"bodyBytes,omitempty"`
	// DecompressRequests accepts requests with Content-Encoding gzip or zstd, which
	// kube-apiserver does not send. Default: false, they get 415. Danger: a few bytes
	// then cost CPU and memory, the latter within bodyBytes.
	DecompressRequests bool `json:"decompressRequests,omitempty"`
	// ResponseBytes bounds a webhook's answer, in bytes. Default: 4194304 (4 MiB).
	// Danger: an answer above it counts as none; the webhook's failure policy
	// speaks.
	ResponseBytes int `json:"responseBytes,omitempty"`
	// Connections bounds open connections of callers. Beyond it, the cluster with
	// most connections loses the one that has been idle for longest; an eighth is
	// kept for callers that have not shown yet who they are. An eighth, 16 at least,
	// may be amid the head of a request. Default: 4096. Danger:
	// with fewer than the API servers need, calls fail on connections that are
	// closed as a request arrives.
	Connections int `json:"connections,omitempty"`
	// ConnectionAge is how old a caller's connection may be, plus or minus up to a
	// half of it, before it is closed with its next answer; one that is idle is left
	// alone. 0s: as old as it likes, unless fleet says that replicas join. Default: 5m. Danger: without it busy callers
	// never come to replicas that are added later; a short one costs TLS handshakes.
	ConnectionAge Duration `json:"connectionAge,omitzero"`
	// ShadowCalls bounds calls of Shadow webhooks under way. Clusters share them; one
	// alone gets half. Default: 256. Danger: those beyond it are dropped, with a log
	// line.
	ShadowCalls int `json:"shadowCalls,omitempty"`
	// Admissions bounds the admissions for which webhooks are being called.
	// Default: 1024. Danger: those beyond wait 10 ms and are then shed: denied
	// with 429, or allowed with a warning where all webhooks concerned are Ignore.
	Admissions int `json:"admissions,omitempty"`
	// AdmissionsPerCluster bounds those of one cluster. Default: 512. Danger: as
	// many as admissions, and one cluster's storm is everybody's.
	AdmissionsPerCluster int `json:"admissionsPerCluster,omitempty"`
	// ReviewBytes bounds the reviews that are held until the last call with them has
	// ended, in bytes; at least requestBytes. Default: 536870912 (512 MiB). Danger:
	// above its share of them a cluster's admissions are shed; alone it gets half, and
	// a third for reviews over 256 KiB.
	ReviewBytes int `json:"reviewBytes,omitempty"`
	// CallsPerEndpoint bounds the calls under way to one address of a webhook.
	// Default: 256. Danger: one beyond waits 100 ms and then fails with cause Shed.
	CallsPerEndpoint int `json:"callsPerEndpoint,omitempty"`
}

// bodiesInMemory is how many of the largest bodies limits.bodyBytes must have room
// for: a cluster gets at most half of it, and a body that grows is there twice.
const bodiesInMemory = 4

func (l *Limits) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if l.BodyBytes/bodiesInMemory < l.RequestBytes {
		errs = append(errs, field.Invalid(at.Child("bodyBytes"), l.BodyBytes, "must be at least four times limits.requestBytes"))
	}
	if l.ReviewBytes < l.RequestBytes {
		errs = append(errs, field.Invalid(at.Child("reviewBytes"), l.ReviewBytes, "must be at least limits.requestBytes, or the largest reviews are always shed"))
	}
	return slices.Concat(
		errs,
		positive(at.Child("requestBytes"), l.RequestBytes),
		positive(at.Child("responseBytes"), l.ResponseBytes),
		positive(at.Child("connections"), l.Connections),
		atLeast(at.Child("connectionAge"), l.ConnectionAge, 0),
		positive(at.Child("shadowCalls"), l.ShadowCalls),
		positive(at.Child("admissions"), l.Admissions),
		positive(at.Child("admissionsPerCluster"), l.AdmissionsPerCluster),
		positive(at.Child("reviewBytes"), l.ReviewBytes),
		positive(at.Child("callsPerEndpoint"), l.CallsPerEndpoint),
	)
}

// Deadline bounds the time of one admission.
type Deadline struct {
	// Default is for a caller that sends no ?timeout=; never above max. Default:
	// 10s. Danger: where the caller waits less, an answer comes too late.
	Default Duration `json:"default,omitzero"`
	// Max is the longest that an admission may take, at most 30s. Default: 30s.
	// Danger: webhooks that are slower than it fail.
	Max Duration `json:"max,omitzero"`
	// Grace is how long other webhooks may still answer after the first denial.
	// Default: 100ms. Danger: it delays every denied request; 0s shows one denial
	// only.
	Grace Duration `json:"grace,omitzero"`
	// Impatience bounds the call of a webhook whose failure is ignored, where
	// others are to be called after it. Default: 1s. Danger: such a webhook that
	// is slower counts as failed, and is ignored.
	Impatience Duration `json:"impatience,omitzero"`
}

func (d *Deadline) validate(at *field.Path) field.ErrorList {
	errs := slices.Concat(
		above(at.Child("default"), d.Default),
		above(at.Child("max"), d.Max),
		atLeast(at.Child("grace"), d.Grace, 0),
		above(at.Child("impatience"), d.Impatience),
	)
	if d.Max.Duration > chain.MaxTimeout {
		errs = append(errs, field.Invalid(at.Child("max"), d.Max, "must be at most "+chain.MaxTimeout.String()+", the longest that kube-apiserver waits"))
	}
	return errs
}

// Timeouts bound the steps of a connection.
type Timeouts struct {
	// Headers bounds the TLS handshake of a caller, and the headers of a request.
	// Default: 5s. Danger: as long can a stranger hold a connection.
	Headers Duration `json:"headers,omitzero"`
	// Body bounds the body of a request, never beyond its deadline. Default: 5s.
	// Danger: a large review over a slow line needs time.
	Body Duration `json:"body,omitzero"`
	// Idle is how long a caller's connection may be idle. Default: 2m0s. Danger:
	// at or below the 90s of kube-apiserver calls are lost on connections that
	// are closed as a request arrives.
	Idle Duration `json:"idle,omitzero"`
	// Connect bounds TCP connect and TLS handshake towards a webhook. Default: 1s.
	// Danger: so long does a call wait for an address that is gone.
	Connect Duration `json:"connect,omitzero"`
}

func (t *Timeouts) validate(at *field.Path) field.ErrorList {
	return slices.Concat(
		above(at.Child("headers"), t.Headers),
		above(at.Child("body"), t.Body),
		above(at.Child("idle"), t.Idle),
		above(at.Child("connect"), t.Connect),
	)
}

// DNS is how names of webhooks are resolved: in the background, never while a
// request waits.
type DNS struct {
	// Server is host:port of the DNS server. Default: the system's. Danger: who
	// answers for it says where reviews go, though not whom TLS trusts there.
	Server string `json:"server,omitempty"`
	// Interval is the time between two look-ups of a name. Default: 10s. Danger:
	// a webhook that moves is called at its old addresses that much longer.
	Interval Duration `json:"interval,omitzero"`
	// Timeout bounds how long each webhook waits for one look-up. Default: 5s. A
	// look-up that nobody waits for any more may go on for as long as resolv.conf has
	// it try; webhooks of that name that look meanwhile share it. Danger: above the 5s
	// that a new configuration waits for its first look-ups, the rest are made later.
	Timeout Duration `json:"timeout,omitzero"`
}

func (d *DNS) validate(at *field.Path) field.ErrorList {
	errs := append(above(at.Child("interval"), d.Interval), above(at.Child("timeout"), d.Timeout)...)
	if d.Server != "" {
		errs = append(errs, address(at.Child("server"), d.Server, 1)...)
	}
	return errs
}

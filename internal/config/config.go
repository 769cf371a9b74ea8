// SPDX-License-Identifier: Apache-2.0

// Package config reads the process's configuration file.
package config

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// The version and kind of the configuration file.
const (
	APIVersion = "dispatcher.dev/v1alpha1"
	Kind       = "DispatcherConfiguration"
)

// DefaultAdmin is where the admin listener is unless the file says otherwise.
const DefaultAdmin = "127.0.0.1:8081"

// Config is a DispatcherConfiguration: what the process needs to know before it
// reads the registry. Relative paths are relative to the file.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Listen is host:port of the admission listener. Default: ":8443". Danger:
	// whoever reaches it and presents a cluster's credential is that cluster.
	Listen string `json:"listen,omitempty"`
	// TLS is the identity of the admission listener and whom it trusts. Required.
	TLS TLS `json:"tls"`
	// Admin is the listener for probes and the status page.
	Admin Admin `json:"admin,omitzero"`

	// Sources are where the registry's objects come from. Required.
	Sources []Source `json:"sources"`
	// FileRoots are directories in which files may lie that the sources' manifests
	// name, besides the manifest's own. Default: none. Danger: whoever may write
	// manifests can have what lies there sent to a webhook or to a cluster's API.
	FileRoots []string `json:"fileRoots,omitempty"`
	// ReloadInterval is the time between two looks at sources and certificates,
	// at least 10ms. Default: 2s. Danger: a change, also one that closes a hole,
	// takes effect that much later.
	ReloadInterval Duration `json:"reloadInterval,omitzero"`
	// AllowEmpty lets a source without objects replace one with objects, and lets
	// the process start without any. Default: false. Danger: an empty directory,
	// such as a volume that is not mounted yet, then switches every policy off.
	AllowEmpty bool `json:"allowEmpty,omitempty"`
	// AllowedNetworks are CIDRs of loopback, link-local, multicast or metadata
	// addresses at which webhooks may be called all the same. Default: none.
	// Danger: a webhook's configuration can then reach what only this host can.
	AllowedNetworks []string `json:"allowedNetworks,omitempty"`

	// Bypass names requests that pass without any webhook being called.
	Bypass Bypass `json:"bypass,omitzero"`
	// FailOpen names requests whose webhooks are called and whose denials stand,
	// but which no failing call blocks.
	FailOpen FailOpen `json:"failOpen,omitzero"`

	// Limits bound what one caller or webhook can make the process hold.
	Limits Limits `json:"limits,omitzero"`
	// Deadline bounds the time of one admission.
	Deadline Deadline `json:"deadline,omitzero"`
	// Timeouts bound the steps of a connection.
	Timeouts Timeouts `json:"timeouts,omitzero"`
	// Encoding is Auto, JSON, Protobuf or ProtobufNative: how reviews are written
	// for webhooks whose WebhookBinding does not say. Default: Auto, which is JSON
	// until a webhook says in an answer that it reads protobuf. Danger: most
	// webhooks read nothing but JSON.
	Encoding string `json:"encoding,omitempty"`
	// LameDuck is how long the process goes on serving, closing each connection
	// after its answer, when it has been told to stop. Default: 10s. Danger: a
	// caller keeps idle connections for 90s and loses a call on one that is closed
	// as a request arrives; 95s loses nothing.
	LameDuck Duration `json:"lameDuck,omitzero"`
	// DNS is how names of webhooks are resolved.
	DNS DNS `json:"dns,omitzero"`
	// Log is what is written to standard error.
	Log Log `json:"log,omitzero"`
	// Telemetry is what is told beside metrics and the log. Where traces go is said
	// by the OTEL_* environment variables.
	Telemetry Telemetry `json:"telemetry,omitzero"`
	// Registration is how clusters reach this dispatcher. Only the command
	// registration reads it.
	Registration Registration `json:"registration,omitzero"`
}

// defaults returns what holds for every field that a file leaves out. Decoding
// goes on top, so that a zero that somebody wrote stays a zero.
func defaults() *Config {
	return &Config{
		Listen:         ":8443",
		TLS:            TLS{ClientAuth: Require},
		Admin:          Admin{Listen: DefaultAdmin},
		ReloadInterval: span(registry.DefaultInterval),
		Bypass:         Bypass{Defaults: true},
		FailOpen:       FailOpen{Defaults: true},
		Limits: Limits{
			RequestBytes:  36 << 20,
			BodyBytes:     512 << 20,
			ResponseBytes: transport.DefaultResponseLimit,
			Connections:   4096,
			ConnectionAge: span(5 * time.Minute),
			ShadowCalls:   overload.DefaultShadowCalls,

			Admissions:           overload.DefaultAdmissions,
			AdmissionsPerCluster: overload.DefaultAdmissions / 2,
			ReviewBytes:          overload.DefaultBytes,
			CallsPerEndpoint:     transport.DefaultConcurrency,
		},
		Deadline: Deadline{
			Default: span(10 * time.Second),
			Max:     span(compile.DefaultMaxTimeout),
			Grace:   span(100 * time.Millisecond),

			Impatience: span(dispatcher.DefaultImpatience),
		},
		Timeouts: Timeouts{
			Headers: span(5 * time.Second),
			Body:    span(5 * time.Second),
			Idle:    span(2 * time.Minute),
			Connect: span(transport.DefaultConnectTimeout),
		},
		Encoding: "Auto",
		LameDuck: span(10 * time.Second),
		DNS: DNS{
			Interval: span(transport.DefaultResolveInterval),
			Timeout:  span(transport.DefaultResolveTimeout),
		},
		Log: Log{Level: "info"},
		Telemetry: Telemetry{DecisionLog: DecisionLog{
			MaxBytes: 100 << 20,
			MaxFiles: 4,
			Allows:   true,
		}},
	}
}

// TLS is the identity of the admission listener and whom it trusts. The files
// are read again when they change; while they do not fit together the last good
// ones stay.
type TLS struct {
	// CertFile is the serving certificate with its chain, in PEM. Required.
	// Danger: once it has expired no caller gets through.
	CertFile string `json:"certFile"`
	// KeyFile is its private key, in PEM. Required. Danger: who can read it can
	// pose as the dispatcher, and allow.
	KeyFile string `json:"keyFile"`
	// ClientCAFile are the authorities of client certificates, in PEM. Required
	// where clientAuth is Require. Danger: each of them can mint the name of every
	// cluster that has no caFile of its own.
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// ClientAuth is Require, or IfGiven where some clusters use tokens. Default:
	// Require. Danger: with IfGiven strangers get past the TLS handshake, and as
	// far as a 403.
	ClientAuth string `json:"clientAuth,omitempty"`
}

// The values of TLS.ClientAuth.
const (
	Require = "Require"
	IfGiven = "IfGiven"
)

// Admin is the listener for probes and the status page.
type Admin struct {
	// Listen is host:port. Default: "127.0.0.1:8081". Danger: beyond loopback and
	// without tls everybody who reaches it reads the names of clusters, webhooks
	// and denied objects.
	Listen string `json:"listen,omitempty"`
	// TLS is the identity of the listener and who may see the status page.
	// Default: none, plain HTTP.
	TLS AdminTLS `json:"tls,omitzero"`
	// Profiling serves profiles of the process at /debug/pprof/, to those who may
	// see the status page. Default: false. Danger: making a profile takes a few
	// percent of CPU, a trace more; profiles tell what the process does, and its
	// command line.
	Profiling bool `json:"profiling,omitempty"`
}

// AdminTLS is the identity of the admin listener and whom it trusts. The files
// are followed as those of TLS are.
type AdminTLS struct {
	// CertFile is the serving certificate with its chain, in PEM. Default: none.
	// Danger: once it has expired probes that verify it fail.
	CertFile string `json:"certFile,omitempty"`
	// KeyFile is its private key, in PEM. Required with certFile.
	KeyFile string `json:"keyFile,omitempty"`
	// ClientCAFile are the authorities of those who may see more than the probes,
	// in PEM. Default: everybody may. Danger: without it TLS only hides the answers
	// on their way.
	ClientCAFile string `json:"clientCAFile,omitempty"`
}

// On reports whether the admin listener speaks TLS.
func (t AdminTLS) On() bool { return t.CertFile != "" }

// Bypass names requests that pass without any webhook being called.
type Bypass struct {
	// Defaults adds the built-in rules: the API server's own writes, system
	// namespaces, leases, node heartbeats. Default: true. Danger: without them a webhook that fails closed
	// can keep a cluster from healing.
	Defaults bool `json:"defaults,omitempty"`
	// DispatcherNamespace is the namespace that the dispatcher runs in, if it
	// runs in a cluster that it serves; one more of the built-in rules. Default:
	// none. Danger: without it the dispatcher's own pods wait for the dispatcher.
	DispatcherNamespace string `json:"dispatcherNamespace,omitempty"`
	// Rules are further rules. Default: none. Danger: what they select is judged
	// by nobody.
	Rules []exempt.Rule `json:"rules,omitempty"`
}

// FailOpen names requests that are judged, and that no failing call blocks.
type FailOpen struct {
	// Defaults adds the built-in rules: how a node joins a cluster. Default: true.
	// Danger: without them no node joins while a webhook that fails closed is down.
	Defaults bool `json:"defaults,omitempty"`
	// Rules are further rules. Default: none. Danger: a policy whose webhook is
	// down does not hold for them.
	Rules []exempt.Rule `json:"rules,omitempty"`
}

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
	// alone. 0s: as old as it likes. Default: 5m. Danger: without it busy callers
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

// Log is what is written to standard error, one JSON object per line.
type Log struct {
	// Level is debug, info, warn or error. Default: info. debug adds a line for
	// each admission that was allowed. Danger: above info denials are not logged,
	// above warn what failed open is not either.
	Level string `json:"level,omitempty"`
	// AllowsPerSecond is how many admissions that were allowed get a line at level
	// info, the first of each second; the next line counts those left out. Default:
	// 0, none. Danger: a line costs about as much as a webhook's call.
	AllowsPerSecond int `json:"allowsPerSecond,omitempty"`
}

// Telemetry is what is told beside metrics and the log.
type Telemetry struct {
	// UserNames puts the requesting user's name on spans. Default: false. Danger:
	// the collector's readers then learn who does what.
	UserNames bool `json:"userNames,omitempty"`
	// DecisionLog is a file with a record of every decision.
	DecisionLog DecisionLog `json:"decisionLog,omitzero"`
}

// DecisionLog is a file with one JSON object per admission: who asked for what,
// which webhooks matched, were asked or were skipped and why, and what they said.
type DecisionLog struct {
	// File is written to, and rotated to File.1, File.2 and so on. Default: none,
	// no decision log. Danger: its readers learn who does what in every cluster.
	File string `json:"file,omitempty"`
	// MaxBytes is the size at which the file is rotated. Default: 104857600
	// (100 MiB). Danger: it takes maxFiles+1 times as much on disk.
	MaxBytes int `json:"maxBytes,omitempty"`
	// MaxFiles is how many rotated files are kept. Default: 4. Danger: older
	// decisions are gone.
	MaxFiles int `json:"maxFiles,omitempty"`
	// Allows writes admissions that were plainly allowed, too. Default: true.
	// Danger: without them the file does not say who was asked and agreed.
	Allows bool `json:"allows,omitempty"`
	// Objects adds the objects as they were sent, without the data of Secrets and
	// with mask applied, the options, and userInfo.extra. Default: false. Danger:
	// objects hold what no log should: environment variables, annotations, the
	// content of ConfigMaps.
	Objects bool `json:"objects,omitempty"`
	// Mask are the paths in objects whose values are left out, such as
	// spec.containers.env: a list is gone through, * is any member, and a name with
	// a dot stands in brackets, as in metadata.annotations["example.com/token"].
	// Default: none. Danger: a path that is misspelt masks nothing; a webhook that
	// quotes the object in its message is not masked.
	Mask []string `json:"mask,omitempty"`
}

// Registration is how clusters reach this dispatcher.
type Registration struct {
	// URL is https://host:port, without a path. Required by the command
	// registration.
	URL string `json:"url,omitempty"`
	// CAFile are the authorities of the serving certificate, in PEM. Default: the
	// caller's trust roots. Danger: without it any authority that the control
	// plane's host trusts can stand in for the dispatcher.
	CAFile string `json:"caFile,omitempty"`
}

// SPDX-License-Identifier: Apache-2.0

// Package config reads the process's configuration file.
package config

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/logging"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
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

	// Cell is the cell that this process is a replica of, a DNS label: of the Clusters in
	// the sources only those of this cell are served. Default: all are. Danger: a Cluster
	// without spec.cell is then served by nobody.
	Cell string `json:"cell,omitempty"`

	// Bypass names requests that pass without any webhook being called.
	Bypass Bypass `json:"bypass,omitzero"`
	// FailOpen names requests whose webhooks are called and whose denials stand,
	// but which no failing call blocks.
	FailOpen FailOpen `json:"failOpen,omitzero"`

	// Limits bound what one caller or webhook can make the process hold.
	Limits Limits `json:"limits,omitzero"`
	// Fleet is the replicas that share the clusters' calls.
	Fleet Fleet `json:"fleet,omitzero"`
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
			RequestBytes:  server.DefaultBodyLimit,
			BodyBytes:     server.DefaultBodyBytes,
			ResponseBytes: transport.DefaultResponseLimit,
			Connections:   server.DefaultConnections,
			ConnectionAge: span(5 * time.Minute),
			ShadowCalls:   overload.DefaultShadowCalls,

			Admissions:           overload.DefaultAdmissions,
			AdmissionsPerCluster: overload.DefaultPerCluster,
			ReviewBytes:          overload.DefaultBytes,
			CallsPerEndpoint:     transport.DefaultConcurrency,
		},
		Deadline: Deadline{
			Default: span(server.DefaultTimeout),
			Max:     span(chain.MaxTimeout),
			Grace:   span(100 * time.Millisecond),

			Impatience: span(dispatcher.DefaultImpatience),
		},
		Timeouts: Timeouts{
			Headers: span(server.DefaultHeaderTimeout),
			Body:    span(server.DefaultBodyTimeout),
			Idle:    span(server.DefaultIdleTimeout),
			Connect: span(transport.DefaultConnectTimeout),
		},
		Encoding: webhook.Auto.String(),
		LameDuck: span(10 * time.Second),
		DNS: DNS{
			Interval: span(transport.DefaultResolveInterval),
			Timeout:  span(transport.DefaultResolveTimeout),
		},
		Log: Log{Format: string(logging.JSON), Level: "info"},
		Telemetry: Telemetry{DecisionLog: DecisionLog{
			MaxBytes: 100 << 20,
			MaxFiles: 4,
			Allows:   true,
		}},
	}
}

// Load reads the file at path strictly, over the defaults, and validates it. Its
// relative paths are then relative to the working directory. It returns every
// problem; the Config is nil if there is any.
func Load(path string) (*Config, []manifest.Problem) {
	r := report{file: path}
	data, err := os.ReadFile(path)
	if err != nil {
		r.whole("cannot be read: " + cause(err).Error())
		return nil, r.problems
	}
	c := defaults()
	if !r.decode(data, c) {
		return nil, r.problems
	}
	r.invalid(c.validate())
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	c.anchor(filepath.Dir(path))
	return c, nil
}

// validate returns everything that is wrong, in the order of the fields.
func (c *Config) validate() field.ErrorList {
	return slices.Concat(
		oneOf(field.NewPath("apiVersion"), c.APIVersion, APIVersion),
		oneOf(field.NewPath("kind"), c.Kind, Kind),
		validateListeners(c.Listen, c.Admin.Listen),
		c.TLS.validate(field.NewPath("tls")),
		c.Admin.TLS.validate(field.NewPath("admin", "tls")),
		validateSources(c.Sources, field.NewPath("sources")),
		validateFileRoots(c.FileRoots, field.NewPath("fileRoots")),
		atLeast(field.NewPath("reloadInterval"), c.ReloadInterval, 10*time.Millisecond),
		validateAllowedNetworks(c.AllowedNetworks, field.NewPath("allowedNetworks")),
		validateCell(c.Cell, field.NewPath("cell")),
		c.Bypass.validate(field.NewPath("bypass")),
		exempt.Validate(c.FailOpen.Rules, field.NewPath("failOpen", "rules"), true),
		c.Limits.validate(field.NewPath("limits")),
		c.Fleet.validate(field.NewPath("fleet")),
		c.Deadline.validate(field.NewPath("deadline")),
		c.Timeouts.validate(field.NewPath("timeouts")),
		atLeast(field.NewPath("lameDuck"), c.LameDuck, 0),
		c.DNS.validate(field.NewPath("dns")),
		oneOf(field.NewPath("encoding"), c.Encoding, webhook.Encodings[:]...),
		oneOf(field.NewPath("log", "format"), c.Log.Format, string(logging.JSON), string(logging.Text)),
		oneOf(field.NewPath("log", "level"), c.Log.Level, "debug", "info", "warn", "error"),
		notNegative(field.NewPath("log", "allowsPerSecond"), c.Log.AllowsPerSecond),
		c.Telemetry.DecisionLog.validate(field.NewPath("telemetry", "decisionLog")),
		c.Registration.validate(field.NewPath("registration")),
	)
}

// Registry returns the settings of the registry that the configuration asks for.
// own are listeners of the process that only their opener knows; log may be nil.
func (c *Config) Registry(own []netip.AddrPort, log *slog.Logger) registry.Settings {
	s := registry.Settings{
		Interval:   c.ReloadInterval.Duration,
		FileRoots:  c.FileRoots,
		AllowEmpty: c.AllowEmpty,
		Cell:       c.Cell,
		Compile: compile.Options{
			Addresses:  transport.AddressPolicy{Allowed: prefixes(c.AllowedNetworks), Own: append(listening(c.Listen, c.Admin.Listen), own...)},
			Bypass:     c.Bypass.rules(),
			FailOpen:   c.FailOpen.rules(),
			MaxTimeout: c.Deadline.Max.Duration,
			Encoding:   webhook.ParseEncoding(c.Encoding),

			CertificateRequired: c.TLS.ClientAuth == Require,
		},
		Logger: log,
	}
	for i := range c.Sources {
		s.Sources = append(s.Sources, c.Sources[i].manifests())
	}
	return s
}

// Warnings returns what is allowed and hardly meant. file is what the
// configuration was read from, for people.
func (c *Config) Warnings(file string) []manifest.Problem {
	if c.Admin.TLS.ClientCAFile != "" || isLoopback(c.Admin.Listen) {
		return nil
	}
	return []manifest.Problem{{
		File:   file,
		Object: Kind,
		Field:  "admin.listen",
		Value:  c.Admin.Listen,
		Reason: "is not on loopback, and without admin.tls.clientCAFile everybody who reaches it sees the status page",
	}}
}

// anchor makes relative paths relative to the directory of the file.
func (c *Config) anchor(dir string) {
	for _, path := range []*string{
		&c.TLS.CertFile, &c.TLS.KeyFile, &c.TLS.ClientCAFile,
		&c.Admin.TLS.CertFile, &c.Admin.TLS.KeyFile, &c.Admin.TLS.ClientCAFile,
		&c.Registration.CAFile, &c.Telemetry.DecisionLog.File, &c.Fleet.File,
	} {
		anchor(dir, path)
	}
	for i := range c.Sources {
		c.Sources[i].anchor(dir)
	}
	for i := range c.FileRoots {
		anchor(dir, &c.FileRoots[i])
	}
}

func anchor(dir string, path *string) {
	if *path != "" && !filepath.IsAbs(*path) {
		*path = filepath.Join(dir, *path)
	}
}

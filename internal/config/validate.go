// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/objectpath"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

const (
	minReloadInterval = 10 * time.Millisecond
)

// validate returns everything that is wrong, in the order of the fields.
func (c *Config) validate() field.ErrorList {
	return slices.Concat(
		oneOf(field.NewPath("apiVersion"), c.APIVersion, APIVersion),
		oneOf(field.NewPath("kind"), c.Kind, Kind),
		c.validateListeners(),
		c.TLS.validate(field.NewPath("tls")),
		c.Admin.TLS.validate(field.NewPath("admin", "tls")),
		validateSources(c.Sources, field.NewPath("sources")),
		validateFileRoots(c.FileRoots, field.NewPath("fileRoots")),
		atLeast(field.NewPath("reloadInterval"), c.ReloadInterval, minReloadInterval),
		c.validateAllowedNetworks(field.NewPath("allowedNetworks")),
		c.Bypass.validate(field.NewPath("bypass")),
		exempt.Validate(c.FailOpen.Rules, field.NewPath("failOpen", "rules"), true),
		c.Limits.validate(field.NewPath("limits")),
		c.Deadline.validate(field.NewPath("deadline")),
		c.Timeouts.validate(field.NewPath("timeouts")),
		atLeast(field.NewPath("lameDuck"), c.LameDuck, 0),
		c.DNS.validate(field.NewPath("dns")),
		oneOf(field.NewPath("encoding"), c.Encoding, webhook.Encodings[:]...),
		oneOf(field.NewPath("log", "level"), c.Log.Level, "debug", "info", "warn", "error"),
		notNegative(field.NewPath("log", "allowsPerSecond"), c.Log.AllowsPerSecond),
		c.Telemetry.DecisionLog.validate(field.NewPath("telemetry", "decisionLog")),
		c.Registration.validate(field.NewPath("registration")),
	)
}

func (d *DecisionLog) validate(at *field.Path) field.ErrorList {
	errs := append(positive(at.Child("maxBytes"), d.MaxBytes), notNegative(at.Child("maxFiles"), d.MaxFiles)...)
	if d.File != "" {
		errs = append(errs, file(at.Child("file"), d.File, "")...)
	}
	for i, path := range d.Mask {
		if _, err := objectpath.Parse(path); err != nil {
			errs = append(errs, field.Invalid(at.Child("mask").Index(i), path, err.Error()))
		}
	}
	return errs
}

func (r *Registration) validate(at *field.Path) field.ErrorList {
	if r.URL == "" {
		return nil
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || r.URL != "https://"+u.Host {
		return field.ErrorList{field.Invalid(at.Child("url"), r.URL, "must be https://host:port, with nothing after it")}
	}
	return nil
}

func (c *Config) validateListeners() field.ErrorList {
	admin := field.NewPath("admin", "listen")
	errs := append(address(field.NewPath("listen"), c.Listen, 0), address(admin, c.Admin.Listen, 0)...)
	if len(errs) == 0 && c.Listen == c.Admin.Listen && !strings.HasSuffix(c.Listen, ":0") {
		errs = append(errs, field.Invalid(admin, c.Admin.Listen, "must be another address than listen"))
	}
	return errs
}

func (t *TLS) validate(at *field.Path) field.ErrorList {
	errs := slices.Concat(
		file(at.Child("certFile"), t.CertFile, "the admission listener serves TLS only"),
		file(at.Child("keyFile"), t.KeyFile, "the admission listener serves TLS only"),
		oneOf(at.Child("clientAuth"), t.ClientAuth, Require, IfGiven),
	)
	if t.ClientAuth == Require || t.ClientCAFile != "" {
		errs = append(errs, file(at.Child("clientCAFile"), t.ClientCAFile,
			"without it no client certificate can be verified; where all clusters use tokens set clientAuth: IfGiven")...)
	}
	return errs
}

func (t *AdminTLS) validate(at *field.Path) field.ErrorList {
	if *t == (AdminTLS{}) {
		return nil
	}
	errs := append(
		file(at.Child("certFile"), t.CertFile, "admin.tls needs a certificate to serve"),
		file(at.Child("keyFile"), t.KeyFile, "admin.tls needs the key of its certificate")...)
	if t.ClientCAFile != "" {
		errs = append(errs, file(at.Child("clientCAFile"), t.ClientCAFile, "")...)
	}
	return errs
}

// validateFileRoots refuses a list that allows every file of the host.
func validateFileRoots(roots []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, root := range roots {
		errs = append(errs, file(at.Index(i), root, "")...)
		if filepath.Clean(root) == string(filepath.Separator) {
			errs = append(errs, field.Invalid(at.Index(i), root, "must be a directory that holds what manifests may name, and nothing else"))
		}
	}
	return errs
}

func (c *Config) validateAllowedNetworks(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range c.AllowedNetworks {
		if prefix, err := netip.ParsePrefix(cidr); err != nil || prefix.Addr().Is4In6() {
			errs = append(errs, field.Invalid(at.Index(i), cidr, "must be a CIDR such as 127.0.0.0/8 or fd00::/8"))
		}
	}
	return errs
}

func (b *Bypass) validate(at *field.Path) field.ErrorList {
	errs := exempt.Validate(b.Rules, at.Child("rules"), false)
	namespace := at.Child("dispatcherNamespace")
	if b.DispatcherNamespace == "" {
		return errs
	}
	if !b.Defaults {
		errs = append(errs, field.Forbidden(namespace, "belongs to the built-in rules, and bypass.defaults is false; write a rule"))
	}
	for _, why := range validation.IsDNS1123Label(b.DispatcherNamespace) {
		errs = append(errs, field.Invalid(namespace, b.DispatcherNamespace, why))
	}
	return errs
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

func (d *Deadline) validate(at *field.Path) field.ErrorList {
	errs := slices.Concat(
		above(at.Child("default"), d.Default),
		above(at.Child("max"), d.Max),
		atLeast(at.Child("grace"), d.Grace, 0),
		above(at.Child("impatience"), d.Impatience),
	)
	if d.Max.Duration > compile.DefaultMaxTimeout {
		errs = append(errs, field.Invalid(at.Child("max"), d.Max, "must be at most 30s, the longest that kube-apiserver waits"))
	}
	return errs
}

func (t *Timeouts) validate(at *field.Path) field.ErrorList {
	return slices.Concat(
		above(at.Child("headers"), t.Headers),
		above(at.Child("body"), t.Body),
		above(at.Child("idle"), t.Idle),
		above(at.Child("connect"), t.Connect),
	)
}

func (d *DNS) validate(at *field.Path) field.ErrorList {
	errs := append(above(at.Child("interval"), d.Interval), above(at.Child("timeout"), d.Timeout)...)
	if d.Server != "" {
		errs = append(errs, address(at.Child("server"), d.Server, 1)...)
	}
	return errs
}

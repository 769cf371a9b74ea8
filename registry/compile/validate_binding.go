// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

func validateBinding(b *manifest.WebhookBindingObject, policy transport.AddressPolicy) field.ErrorList {
	errs := validation.ValidateObjectMeta(&b.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	errs = append(errs, validateGlobs(b.Spec.Webhooks, spec.Child("webhooks"))...)
	errs = append(errs, metav1validation.ValidateLabelSelector(b.Spec.ClusterSelector,
		metav1validation.LabelSelectorValidationOptions{}, spec.Child("clusterSelector"))...)
	errs = append(errs, optional(spec.Child("mode"), b.Spec.Mode, "Enforce", "Warn", "Shadow")...)
	errs = append(errs, optional(spec.Child("stage"), b.Spec.Stage, "Validating", "Transactional")...)
	errs = append(errs, optional(spec.Child("compatibility"), b.Spec.Compatibility, "Strict", "APIServer")...)
	errs = append(errs, optional(spec.Child("failurePolicy"), b.Spec.FailurePolicy, "Retry")...)
	errs = append(errs, optional(spec.Child("hedge"), b.Spec.Hedge, "Auto", "On", "Off")...)
	errs = append(errs, optional(spec.Child("join"), b.Spec.Join, "Enforce", "WhenReady")...)
	errs = append(errs, optional(spec.Child("probe"), b.Spec.Probe, "Connect", "Review", "Skip")...)
	errs = append(errs, optional(spec.Child("encoding"), b.Spec.Encoding, "Auto", "JSON", "Protobuf", "ProtobufNative")...)
	errs = append(errs, optional(spec.Child("compression"), b.Spec.Compression, "Off", "Auto", "Gzip", "Zstd")...)
	errs = append(errs, validateBreaker(b.Spec.Breaker, spec.Child("breaker"))...)
	if t := b.Spec.Timeout; t != nil && t.Duration < time.Millisecond {
		errs = append(errs, field.Invalid(spec.Child("timeout"), t.Duration, "must be at least 1ms"))
	}
	for i := range b.Spec.Endpoints {
		errs = append(errs, validateEndpoint(&b.Spec.Endpoints[i], policy, spec.Child("endpoints").Index(i))...)
	}
	return append(errs, validateClientCertificate(b.Spec.ClientCertificate, spec.Child("clientCertificate"))...)
}

// optional checks an enumeration; the empty string is unset.
func optional(at *field.Path, value string, supported ...string) field.ErrorList {
	if value == "" {
		return nil
	}
	return oneOf(at, &value, supported...)
}

func validateGlobs(globs []string, at *field.Path) field.ErrorList {
	if len(globs) == 0 {
		return field.ErrorList{field.Required(at, "at least one glob of the form configuration/webhook")}
	}
	var errs field.ErrorList
	for i, glob := range globs {
		if strings.Count(glob, "/") != 1 {
			errs = append(errs, field.Invalid(at.Index(i), glob, "must have the form configuration/webhook; \"*/*\" is every webhook"))
		} else if _, err := path.Match(glob, ""); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), glob, err.Error()))
		}
	}
	return errs
}

func validateEndpoint(e *manifest.Endpoint, policy transport.AddressPolicy, at *field.Path) field.ErrorList {
	host, port, errs := splitAddress(e.Address, at.Child("address"))
	if len(errs) > 0 {
		return errs
	}
	if err := forbidden(host, port, policy); err != nil {
		return field.ErrorList{field.Invalid(at.Child("address"), e.Address, err.Error())}
	}
	return nil
}

func validateBreaker(b *manifest.Breaker, at *field.Path) field.ErrorList {
	if b == nil {
		return nil
	}
	var errs field.ErrorList
	if p := b.FailurePercent; p != nil && (*p < 1 || *p > 100) {
		errs = append(errs, field.Invalid(at.Child("failurePercent"), *p, "must be between 1 and 100"))
	}
	if n := b.MinRequests; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(at.Child("minRequests"), *n, "must be at least 1"))
	}
	if t := b.OpenTime; t != nil && (t.Duration < 100*time.Millisecond || t.Duration > time.Minute) {
		errs = append(errs, field.Invalid(at.Child("openTime"), t.Duration, "must be between 100ms and 1m"))
	}
	return errs
}

func validateClientCertificate(c *manifest.ClientCertificate, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c != nil && c.CertFile == "" {
		errs = append(errs, field.Required(at.Child("certFile"), ""))
	}
	if c != nil && c.KeyFile == "" {
		errs = append(errs, field.Required(at.Child("keyFile"), ""))
	}
	return errs
}

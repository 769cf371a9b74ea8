// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// bindingReader reads what WebhookBindings say; binding_fields.go says what there is.
type bindingReader struct {
	*credentials
	endpoints map[string]endpoints // by content
}

// readBindings compiles every binding that is valid on its own.
func readBindings(list []manifest.Binding, files *credentials) (bindings []*binding) {
	r := &bindingReader{files, map[string]endpoints{}}
	for i := range list {
		before := len(r.problems)
		if b := r.read(&list[i]); len(r.problems) == before {
			bindings = append(bindings, b)
		}
	}
	return bindings
}

func (r *bindingReader) read(m *manifest.Binding) *binding {
	r.problem(m.Problems(validateBinding(&m.WebhookBinding))...)
	b := &binding{Binding: m, clusters: labels.Everything()}
	for i, f := range bindingFields {
		b.says[i] = f.read(r, m, field.NewPath("spec", f.name))
	}
	if s := m.Spec.ClusterSelector; s != nil {
		b.clusters, _ = metav1.LabelSelectorAsSelector(s) // validated above
	}
	return b
}

func (r *bindingReader) readTimeout(m *manifest.Binding, at *field.Path) *time.Duration {
	t := m.Spec.Timeout
	if t == nil {
		return nil
	}
	if t.Duration < time.Millisecond {
		r.problem(m.Problems(field.ErrorList{field.Invalid(at, t.Duration, "must be at least 1ms")})...)
	}
	return &t.Duration
}

func (r *bindingReader) readBreaker(m *manifest.Binding, at *field.Path) *transport.BreakerSpec {
	b := m.Spec.Breaker
	if b == nil {
		return nil
	}
	r.problem(m.Problems(validateBreaker(b, at))...)
	spec := &transport.BreakerSpec{Off: b.Enabled != nil && !*b.Enabled}
	if b.FailurePercent != nil {
		spec.FailureRatio = float64(*b.FailurePercent) / 100
	}
	if b.MinRequests != nil {
		spec.MinRequests = int(*b.MinRequests)
	}
	if b.OpenTime != nil {
		spec.OpenTime = b.OpenTime.Duration
	}
	return spec
}

func validateBreaker(b *v1alpha1.Breaker, at *field.Path) field.ErrorList {
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

// readAuthorities returns the certificates that verify those of the bound webhooks.
func (r *bindingReader) readAuthorities(m *manifest.Binding, at *field.Path) *string {
	bundle, _ := r.readCA(m.Origin, m.Spec.CAFile, at)
	if len(bundle) == 0 {
		return nil
	}
	return new(string(bundle))
}

// endpoints are a list of endpoints. A reader makes one of one content.
type endpoints struct{ specs *[]transport.EndpointSpec }

func (r *bindingReader) readEndpoints(m *manifest.Binding, at *field.Path) *endpoints {
	if len(m.Spec.Endpoints) == 0 {
		return nil
	}
	var key strings.Builder
	specs := make([]transport.EndpointSpec, len(m.Spec.Endpoints))
	for i, e := range m.Spec.Endpoints {
		r.problem(m.Problems(validateEndpoint(&e, r.options.Addresses, at.Index(i)))...)
		bundle, _ := r.readCA(m.Origin, e.CAFile, at.Index(i).Child("caFile"))
		specs[i] = transport.EndpointSpec{Address: e.Address, ServerName: e.ServerName, CABundle: bundle}
		for _, part := range []string{e.Address, e.ServerName, string(bundle)} {
			key.WriteString(part)
			key.WriteByte(0)
		}
	}
	known, ok := r.endpoints[key.String()]
	if !ok {
		known = endpoints{&specs}
		r.endpoints[key.String()] = known
	}
	return &known
}

func validateEndpoint(e *v1alpha1.Endpoint, policy transport.AddressPolicy, at *field.Path) field.ErrorList {
	host, port, errs := splitAddress(e.Address, at.Child("address"))
	if len(errs) > 0 {
		return errs
	}
	if err := forbidden(host, port, policy); err != nil {
		return field.ErrorList{field.Invalid(at.Child("address"), e.Address, err.Error())}
	}
	return nil
}

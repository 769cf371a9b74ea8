// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// endpointsKey is a list of endpoints by content; "" is none.
type endpointsKey string

// compileBindings compiles every binding that is valid on its own.
func (c *compiler) compileBindings() {
	for i := range c.objects.Bindings {
		m := &c.objects.Bindings[i]
		before := len(c.problems)
		c.problem(m.Problems(validateBinding(&m.WebhookBindingObject, c.Addresses))...)
		b := &binding{Binding: m, says: c.compileDispatch(m)}
		if len(c.problems) > before {
			continue
		}
		selector, err := clusterSelector(m.Spec.ClusterSelector)
		if err != nil {
			c.problem(m.Problem(field.NewPath("spec", "clusterSelector"), "", err.Error()))
			continue
		}
		b.clusters = selector
		c.bindings = append(c.bindings, b)
	}
}

// compileDispatch reads what the binding says, and the files that it names.
func (c *compiler) compileDispatch(m *manifest.Binding) partialDispatch {
	spec := &m.Spec
	says := partialDispatch{
		mode:      modeOf(spec.Mode),
		stage:     stageOf(spec.Stage),
		compat:    compatibilityOf(spec.Compatibility),
		order:     spec.Order,
		endpoints: c.compileEndpoints(m),
		client:    c.compileClient(m),
		token:     c.compileToken(m),
		retry:     retryOf(spec.FailurePolicy),
		hedge:     hedgeOf(spec.Hedge),
		denyWins:  spec.DenyWins,
		breaker:   breakerOf(spec.Breaker),
		probe:     probeOf(spec.Probe),
		join:      joinOf(spec.Join),

		encoding:    encodingOf(spec.Encoding),
		compression: compressionOf(spec.Compression),
	}
	if spec.Timeout != nil {
		says.timeout = &spec.Timeout.Duration
	}
	return says
}

func modeOf(s string) *chain.Mode {
	switch s {
	case "":
		return nil
	case "Warn":
		return new(chain.Warn)
	case "Shadow":
		return new(chain.Shadow)
	}
	return new(chain.Enforce)
}

func stageOf(s string) *chain.Stage {
	switch s {
	case "":
		return nil
	case "Transactional":
		return new(chain.StageTransactional)
	}
	return new(chain.StageValidating)
}

func compatibilityOf(s string) *codec.Compatibility {
	switch s {
	case "":
		return nil
	case "APIServer":
		return new(codec.APIServer)
	}
	return new(codec.Strict)
}

func retryOf(s string) *bool {
	if s == "" {
		return nil
	}
	return new(true)
}

func hedgeOf(s string) *chain.Hedge {
	switch s {
	case "":
		return nil
	case "On":
		return new(chain.HedgeOn)
	case "Off":
		return new(chain.HedgeOff)
	}
	return new(chain.HedgeAuto)
}

func encodingOf(s string) *webhook.Encoding {
	if s == "" {
		return nil
	}
	return new(webhook.ParseEncoding(s))
}

func compressionOf(s string) *webhook.Compression {
	switch s {
	case "":
		return nil
	case "Auto":
		return new(webhook.CompressAuto)
	case "Gzip":
		return new(webhook.CompressGzip)
	case "Zstd":
		return new(webhook.CompressZstd)
	}
	return new(webhook.Uncompressed)
}

func probeOf(s string) *chain.Probe {
	switch s {
	case "":
		return nil
	case "Skip":
		return new(chain.ProbeSkip)
	case "Review":
		return new(chain.ProbeReview)
	}
	return new(chain.ProbeConnect)
}

func joinOf(s string) *chain.Join {
	switch s {
	case "":
		return nil
	case "WhenReady":
		return new(chain.JoinWhenReady)
	}
	return new(chain.JoinEnforce)
}

func breakerOf(b *manifest.Breaker) *transport.BreakerSpec {
	if b == nil {
		return nil
	}
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

func (c *compiler) compileEndpoints(m *manifest.Binding) *endpointsKey {
	if len(m.Spec.Endpoints) == 0 {
		return nil
	}
	var key strings.Builder
	specs := make([]transport.EndpointSpec, len(m.Spec.Endpoints))
	for i, e := range m.Spec.Endpoints {
		at := field.NewPath("spec", "endpoints").Index(i).Child("caFile")
		specs[i] = transport.EndpointSpec{Address: e.Address, ServerName: e.ServerName, CABundle: c.readCA(m.Origin, e.CAFile, at)}
		for _, part := range []string{e.Address, e.ServerName, string(specs[i].CABundle)} {
			key.WriteString(part)
			key.WriteByte(0)
		}
	}
	k := endpointsKey(key.String())
	c.endpoints[k] = specs
	return &k
}

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

// binding is a WebhookBinding, compiled.
type binding struct {
	*manifest.Binding
	clusters labels.Selector
	says     partialDispatch
	selected int // clusters
}

// dispatch is how one webhook is dispatched in one cluster. It is comparable:
// equal dispatches of a webhook share everything that is compiled.
type dispatch struct {
	mode      chain.Mode
	timeout   time.Duration // 0: the webhook's own
	endpoints endpointsKey
	client    keyPair
	token     string
	stage     chain.Stage
	order     int32
	compat    codec.Compatibility
	retry     bool // failed calls are repeated, then Fail
	hedge     chain.Hedge
	denyWins  bool
	breaker   transport.BreakerSpec
	probe     chain.Probe
	join      chain.Join
	wire      webhook.Wire
}

// keyPair is a client certificate and its key in PEM; zero is none.
type keyPair struct{ certificate, key string }

// partialDispatch is what one binding says; nil: nothing.
type partialDispatch struct {
	mode      *chain.Mode
	timeout   *time.Duration
	endpoints *endpointsKey
	client    *keyPair
	token     *string
	stage     *chain.Stage
	order     *int32
	compat    *codec.Compatibility
	retry     *bool
	hedge     *chain.Hedge
	denyWins  *bool
	breaker   *transport.BreakerSpec
	probe     *chain.Probe
	join      *chain.Join

	encoding    *webhook.Encoding
	compression *webhook.Compression
}

// binds reports whether one of the binding's globs selects the webhook.
func (b *binding) binds(configuration, webhook string) bool {
	for _, glob := range b.Spec.Webhooks {
		if globMatches(glob, configuration, webhook) {
			return true
		}
	}
	return false
}

func globMatches(glob, configuration, webhook string) bool {
	ok, err := path.Match(glob, configuration+"/"+webhook)
	return ok && err == nil
}

// clusterSelector compiles a valid selector; none selects all.
func clusterSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// conflict is one field that two bindings set differently (E16).
type conflict struct {
	first, second *binding
	field         string
}

// merge is bindings put together for one webhook and cluster.
type merge struct {
	dispatch  dispatch
	conflicts []conflict
	setBy     map[string]*binding
}

// mergeBindings puts together what the bindings say, where encoding is what holds
// if none does. Their order decides only which of two that disagree is named first.
func mergeBindings(bindings []*binding, encoding webhook.Encoding) merge {
	m := merge{setBy: map[string]*binding{}}
	m.dispatch.wire.Encoding = encoding
	for _, b := range bindings {
		setOnce(&m, b, "mode", &m.dispatch.mode, b.says.mode)
		setOnce(&m, b, "timeout", &m.dispatch.timeout, b.says.timeout)
		setOnce(&m, b, "endpoints", &m.dispatch.endpoints, b.says.endpoints)
		setOnce(&m, b, "clientCertificate", &m.dispatch.client, b.says.client)
		setOnce(&m, b, "bearerTokenFile", &m.dispatch.token, b.says.token)
		setOnce(&m, b, "stage", &m.dispatch.stage, b.says.stage)
		setOnce(&m, b, "order", &m.dispatch.order, b.says.order)
		setOnce(&m, b, "compatibility", &m.dispatch.compat, b.says.compat)
		setOnce(&m, b, "failurePolicy", &m.dispatch.retry, b.says.retry)
		setOnce(&m, b, "hedge", &m.dispatch.hedge, b.says.hedge)
		setOnce(&m, b, "denyWins", &m.dispatch.denyWins, b.says.denyWins)
		setOnce(&m, b, "breaker", &m.dispatch.breaker, b.says.breaker)
		setOnce(&m, b, "probe", &m.dispatch.probe, b.says.probe)
		setOnce(&m, b, "join", &m.dispatch.join, b.says.join)
		setOnce(&m, b, "encoding", &m.dispatch.wire.Encoding, b.says.encoding)
		setOnce(&m, b, "compression", &m.dispatch.wire.Compression, b.says.compression)
	}
	return m
}

func setOnce[T comparable](m *merge, b *binding, name string, into, value *T) {
	if value == nil {
		return
	}
	first, set := m.setBy[name]
	if !set {
		*into, m.setBy[name] = *value, b
		return
	}
	if *into != *value {
		m.conflicts = append(m.conflicts, conflict{first, b, name})
	}
}

// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Check returns what is wrong with the variables, all of it, by their names: a
// value may be a credential. The SDK would print it, and go on with something else.
// Nothing is read, and so nothing wrong, where OTEL_SDK_DISABLED is true.
func (e Environment) Check() error {
	if e.Disabled() {
		return nil
	}
	var problems []error
	for _, rule := range variableRules() {
		for _, name := range rule.names {
			if value := e.first(name); value != "" && !rule.holds(value) {
				problems = append(problems, fmt.Errorf("%s: must be %s", name, rule.what))
			}
		}
	}
	problems = append(problems, e.checkEndpoints()...)
	return errors.Join(append(problems, e.checkPairs()...)...)
}

// variableRule is what variables must be if they are set.
type variableRule struct {
	names []string
	what  string
	holds func(value string) bool
}

func variableRules() []variableRule {
	return []variableRule{
		{[]string{"OTEL_TRACES_EXPORTER"}, "otlp or none", oneOf("otlp", "none")},
		{[]string{"OTEL_METRICS_EXPORTER"}, "of otlp, prometheus and none", someOf("otlp", "prometheus", "none")},
		{[]string{"OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT"}, "milliseconds", isCount},
		{[]string{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"}, "cumulative, delta or lowmemory", oneOfFolded("cumulative", "delta", "lowmemory")},
		{otlp("PROTOCOL"), "grpc or http/protobuf", oneOf("grpc", "http/protobuf")},
		{otlp("HEADERS"), "a list such as key1=value1,key2=value2, with %XX for what is special", isHeaders},
		{otlp("TIMEOUT"), "milliseconds", isCount},
		{otlp("COMPRESSION"), "gzip or none", oneOf("gzip", "none")},
		{otlp("INSECURE"), "true or false", isBool},
		{otlp("CERTIFICATE"), "a file of certificates (PEM)", isAuthorities},
		{[]string{"OTEL_SDK_DISABLED"}, "true or false", isBool},
		{[]string{"OTEL_TRACES_SAMPLER"}, strings.Join(samplers(), ", ") + " or empty", oneOfFolded(samplers()...)},
		{[]string{"OTEL_TRACES_SAMPLER_ARG"}, "a number from 0 to 1", isRatio},
		{[]string{"OTEL_SERVICE_NAME"}, "UTF-8", utf8.ValidString},
		{[]string{"OTEL_RESOURCE_ATTRIBUTES"}, "a list such as key1=value1,key2=value2, with %XX for what is special", isPairs},
		{[]string{"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT"}, "milliseconds", isCount},
		{[]string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"}, "a number above 0", isSize},
		{spanLimits(), "a number", isNumber},
	}
}

// otlp returns the names of an exporter's variable, for all signals and for one.
func otlp(what string) []string {
	names := []string{"OTEL_EXPORTER_OTLP_" + what}
	for _, signal := range []string{"TRACES", "METRICS", "LOGS"} {
		names = append(names, "OTEL_EXPORTER_OTLP_"+signal+"_"+what)
	}
	return names
}

func spanLimits() []string {
	return []string{
		"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT",
		"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
		"OTEL_SPAN_EVENT_COUNT_LIMIT", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
		"OTEL_SPAN_LINK_COUNT_LIMIT", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
	}
}

func samplers() []string {
	return []string{
		"always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
	}
}

// checkEndpoints wants URLs, of HTTP unless it is gRPC that somebody asks for: that
// takes other addresses, too.
func (e Environment) checkEndpoints() (problems []error) {
	holds := isHTTP
	if slices.Contains(e.all(otlp("PROTOCOL")), "grpc") {
		holds = isURL
	}
	for _, name := range otlp("ENDPOINT") {
		if value := e.first(name); value != "" && !holds(value) {
			problems = append(problems, fmt.Errorf("%s: must be a URL such as https://collector:4318", name))
		}
	}
	return problems
}

// checkPairs looks at the client certificates, which need their keys.
func (e Environment) checkPairs() (problems []error) {
	certificates, keys := otlp("CLIENT_CERTIFICATE"), otlp("CLIENT_KEY")
	for i, name := range certificates {
		certificate, key := e.first(name), e.first(keys[i])
		if certificate == "" && key == "" {
			continue
		}
		if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
			problems = append(problems, fmt.Errorf("%s and %s: must be files of a certificate and of its key (PEM)", name, keys[i]))
		}
	}
	return problems
}

func oneOf(words ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(words, value) }
}

// oneOfFolded is oneOf where case does not matter.
func oneOfFolded(words ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(words, strings.ToLower(value)) }
}

// someOf wants words with commas between them.
func someOf(known ...string) func(string) bool {
	return func(value string) bool {
		return !slices.ContainsFunc(words(value), func(word string) bool { return !slices.Contains(known, word) })
	}
}

func isBool(value string) bool {
	return strings.EqualFold(value, "true") || strings.EqualFold(value, "false")
}

func isRatio(value string) bool {
	ratio, err := strconv.ParseFloat(value, 64)
	return err == nil && ratio >= 0 && ratio <= 1
}

func isNumber(value string) bool {
	_, err := strconv.Atoi(value)
	return err == nil
}

func isCount(value string) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n >= 0
}

func isSize(value string) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n > 0
}

func isURL(value string) bool {
	_, err := url.Parse(value)
	return err == nil && utf8.ValidString(value)
}

func isHTTP(value string) bool {
	u, err := url.Parse(value)
	return err == nil && utf8.ValidString(value) && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// isPairs wants key=value, with nothing between two commas allowed.
func isPairs(value string) bool {
	for _, pair := range strings.Split(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, text, found := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(text))
		if !found || err != nil || strings.TrimSpace(key) == "" || !utf8.ValidString(key+plain) {
			return false
		}
	}
	return true
}

// isHeaders wants pairs whose keys and values HTTP can carry.
func isHeaders(value string) bool {
	if !isPairs(value) {
		return false
	}
	for _, pair := range strings.Split(value, ",") {
		key, text, _ := strings.Cut(pair, "=")
		plain, _ := url.PathUnescape(text)
		if strings.ContainsFunc(strings.TrimSpace(key), isNoToken) || strings.ContainsFunc(strings.TrimSpace(plain), isControl) {
			return false
		}
	}
	return true
}

// isNoToken is by RFC 9110, section 5.6.2.
func isNoToken(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func isAuthorities(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && x509.NewCertPool().AppendCertsFromPEM(text)
}

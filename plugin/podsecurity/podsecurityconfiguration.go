// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
)

// Configuration is a PodSecurityConfiguration of pod-security.admission.config.k8s.io/v1,
// or of the versions before, which have the same fields.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	Defaults   Defaults   `json:"defaults,omitzero"`
	Exemptions Exemptions `json:"exemptions,omitzero"`
}

// Defaults are for namespaces without the label. Levels are privileged unless said, versions
// latest.
type Defaults struct {
	Enforce        string `json:"enforce,omitempty"`
	EnforceVersion string `json:"enforce-version,omitempty"`
	Audit          string `json:"audit,omitempty"`
	AuditVersion   string `json:"audit-version,omitempty"`
	Warn           string `json:"warn,omitempty"`
	WarnVersion    string `json:"warn-version,omitempty"`
}

// Exemptions are who and what is not checked.
type Exemptions struct {
	Usernames      []string `json:"usernames,omitempty"`
	Namespaces     []string `json:"namespaces,omitempty"`
	RuntimeClasses []string `json:"runtimeClasses,omitempty"`
}

func (c *Configuration) setDefaults() {
	d := &c.Defaults
	for _, level := range []*string{&d.Enforce, &d.Audit, &d.Warn} {
		*level = cmp.Or(*level, string(api.LevelPrivileged))
	}
	for _, version := range []*string{&d.EnforceVersion, &d.AuditVersion, &d.WarnVersion} {
		*version = cmp.Or(*version, api.VersionLatest)
	}
}

// policy is what the defaults say that are validated.
func (d *Defaults) policy() api.Policy {
	read := func(level, version string) (lv api.LevelVersion) {
		lv.Level, _ = api.ParseLevel(level)
		lv.Version, _ = api.ParseVersion(version)
		return lv
	}
	return api.Policy{
		Enforce: read(d.Enforce, d.EnforceVersion),
		Audit:   read(d.Audit, d.AuditVersion),
		Warn:    read(d.Warn, d.WarnVersion),
	}
}

const configurationGroup = "pod-security.admission.config.k8s.io/"

// configurationVersions have the same fields. The first is the one to write.
var configurationVersions = []string{configurationGroup + "v1", configurationGroup + "v1beta1", configurationGroup + "v1alpha1"}

// validate has kube-apiserver's words.
func (c *Configuration) validate() (errs field.ErrorList) {
	if v := c.APIVersion; v != "" && !slices.Contains(configurationVersions, v) {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), v, configurationVersions[:1]))
	}
	if c.Kind != "" && c.Kind != "PodSecurityConfiguration" {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), c.Kind, []string{"PodSecurityConfiguration"}))
	}
	at, d := field.NewPath("defaults"), &c.Defaults
	for _, said := range []struct{ name, level, version string }{
		{"enforce", d.Enforce, d.EnforceVersion}, {"warn", d.Warn, d.WarnVersion}, {"audit", d.Audit, d.AuditVersion},
	} {
		if _, err := api.ParseLevel(said.level); err != nil {
			errs = append(errs, field.Invalid(at.Child(said.name), said.level, err.Error()))
		}
		if _, err := api.ParseVersion(said.version); err != nil {
			errs = append(errs, field.Invalid(at.Child(said.name+"-version"), said.version, err.Error()))
		}
	}
	at = field.NewPath("exemptions")
	errs = append(errs, validateNames(c.Exemptions.Namespaces, at.Child("namespaces"), func(name string) []string { return validation.ValidateNamespaceName(name, false) })...)
	errs = append(errs, validateNames(c.Exemptions.RuntimeClasses, at.Child("runtimeClasses"), func(name string) []string { return validation.NameIsDNSSubdomain(name, false) })...)
	return append(errs, validateNames(c.Exemptions.Usernames, at.Child("usernames"), func(name string) []string {
		if name == "" {
			return []string{"username must not be empty"}
		}
		return nil
	})...)
}

func validateNames(names []string, at *field.Path, check func(string) []string) (errs field.ErrorList) {
	for i, name := range names {
		if reasons := check(name); len(reasons) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), name, strings.Join(reasons, ", ")))
		} else if slices.Contains(names[:i], name) {
			errs = append(errs, field.Duplicate(at.Index(i), name))
		}
	}
	return errs
}

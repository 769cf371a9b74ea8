// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registration"
)

// TestRBAC reads what is printed as an API server would.
func TestRBAC(t *testing.T) {
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "admission-dispatcher-namespaces", Namespace: "admission-dispatcher"}
	namespaces := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}}
	version := rbacv1.PolicyRule{NonResourceURLs: []string{"/version"}, Verbs: []string{"get"}}
	own := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
			ResourceNames: []string{"admission-dispatcher"}, Verbs: verbs}
	}
	lookedAfter := func(policy string) *chain.Cluster {
		c := needing(chain.Needs{}, chain.Needs{})
		c.Registration = policy
		return c
	}
	access := rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}}
	for _, tt := range []struct {
		name, user string
		want       rbacv1.Subject
		cluster    *chain.Cluster
		rules      []rbacv1.PolicyRule
	}{
		{"a ServiceAccount", "", account, nil, []rbacv1.PolicyRule{namespaces, version, access, own("get")}},
		{"a user", `CN "quoted": #1`, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: `CN "quoted": #1`}, nil, []rbacv1.PolicyRule{namespaces, version, access, own("get")}},
		{"a cluster that is asked for nothing", "", account, needing(chain.Needs{}, chain.Needs{NamespaceLabels: []string{"a"}}), []rbacv1.PolicyRule{namespaces, version, own("get")}},
		{"a registration that is applied", "", account, lookedAfter("Apply"), []rbacv1.PolicyRule{namespaces, version, own("get", "create", "patch")}},
		{"a registration that nobody looks at", "", account, lookedAfter("Off"), []rbacv1.PolicyRule{namespaces, version}},
		{"O6 what plugins read", "", account, needing(chain.Needs{Objects: []schema.GroupVersionResource{
			{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, {Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "limitranges"},
		}}, chain.Needs{Objects: []schema.GroupVersionResource{
			{Group: "storage.k8s.io", Version: "v1beta1", Resource: "storageclasses"}, {Version: "v1", Resource: "configmaps"},
		}}), []rbacv1.PolicyRule{
			namespaces,
			{APIGroups: []string{""}, Resources: []string{"configmaps", "limitranges"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses"}, Verbs: []string{"get", "list", "watch"}},
			version, own("get"),
		}},
		{"J2 a validating webhook asks the authorizer", "", account, needing(chain.Needs{}, chain.Needs{Authorizer: true}), []rbacv1.PolicyRule{namespaces, version, access, own("get")}},
		{"H30 a policy merges into kinds of the cluster", "", account, needing(chain.Needs{Authorizer: true, Types: true}, chain.Needs{}), []rbacv1.PolicyRule{
			namespaces, {NonResourceURLs: []string{"/version", "/openapi/v3", "/openapi/v3/*"}, Verbs: []string{"get"}}, access, own("get"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			printed := registration.RBAC(tt.user, tt.cluster)
			if again := registration.RBAC(tt.user, tt.cluster); !bytes.Equal(printed, again) {
				t.Errorf("not the same bytes:\n%s\n%s", printed, again)
			}
			documents := bytes.Split(printed, []byte("---\n"))
			if tt.user == "" {
				var namespace corev1.Namespace
				var created corev1.ServiceAccount
				strictly(t, documents[0], &namespace)
				strictly(t, documents[1], &created)
				if namespace.Name != account.Namespace || created.Name != account.Name || created.Namespace != account.Namespace {
					t.Errorf("created are %s and %s/%s", namespace.Name, created.Namespace, created.Name)
				}
				documents = documents[2:]
			}
			var role rbacv1.ClusterRole
			var binding rbacv1.ClusterRoleBinding
			strictly(t, documents[0], &role)
			strictly(t, documents[1], &binding)
			if diff := cmp.Diff(tt.rules, role.Rules); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
			if binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != role.Kind {
				t.Errorf("the role bound is %+v", binding.RoleRef)
			}
			if diff := cmp.Diff([]rbacv1.Subject{tt.want}, binding.Subjects); diff != "" {
				t.Errorf("subjects (-want +got):\n%s", diff)
			}
		})
	}
}

// needing is a cluster with a Hook in each chain.
func needing(mutating, validating chain.Needs) *chain.Cluster {
	return &chain.Cluster{
		Mutating:   &chain.Chain{Webhooks: []*chain.Entry{{Needs: mutating}}},
		Validating: &chain.Chain{Webhooks: []*chain.Entry{{Needs: validating}}},
	}
}

func strictly(t *testing.T, document []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
}

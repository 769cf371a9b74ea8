// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// configurationOf returns what of the process's configuration is about its life.
func configurationOf(t *testing.T, made map[string]string) (c struct{ LameDuck string }) {
	t.Helper()
	text := object[*core.ConfigMap](t, made, "configmap.yaml").Data["dispatcher.yaml"]
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLife: whatever values say, a pod gets the time that its end takes, a roll-out
// takes no replica away, and nothing limits CPU.
func TestLife(t *testing.T) {
	for name, values := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			made := mustRender(t, values)
			deployment := object[*apps.Deployment](t, made, "deployment.yaml")
			pod := deployment.Spec.Template.Spec
			lameDuck, err := time.ParseDuration(configurationOf(t, made).LameDuck)
			if err != nil {
				t.Fatal(err)
			}
			const longest, margin = 30 * time.Second, 5 * time.Second // docs/operations.md, rolling restarts
			if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace < lameDuck+longest+margin {
				t.Errorf("a pod has %v to end, and needs %v", grace, lameDuck+longest+margin)
			}
			if rolling := deployment.Spec.Strategy.RollingUpdate; rolling.MaxUnavailable.IntValue() != 0 || rolling.MaxSurge.String() == "0" {
				t.Errorf("a roll-out: %v", rolling)
			}
			checkContainer(t, &pod)
			replicas := deployment.Spec.Replicas
			if _, scaled := made["horizontalpodautoscaler.yaml"]; scaled {
				scaler := object[*autoscaling.HorizontalPodAutoscaler](t, made, "horizontalpodautoscaler.yaml")
				if replicas != nil {
					t.Error("the Deployment and the autoscaler both say how many replicas there are")
				}
				replicas = scaler.Spec.MinReplicas
			}
			budget := object[*policy.PodDisruptionBudget](t, made, "poddisruptionbudget.yaml")
			if replicas == nil || *replicas < 2 || budget.Spec.MaxUnavailable.IntValue() >= int(*replicas) {
				t.Errorf("%v replicas, of which %v may be taken away", replicas, budget.Spec.MaxUnavailable)
			}
		})
	}
}

func checkContainer(t *testing.T, pod *core.PodSpec) {
	c := pod.Containers[0]
	if _, limited := c.Resources.Limits[core.ResourceCPU]; limited {
		t.Error("CPU is limited")
	}
	if c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()) != 0 || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("memory: %v", c.Resources)
	}
	at := slices.IndexFunc(c.Env, func(v core.EnvVar) bool { return v.Name == "GOMAXPROCS" })
	if at < 0 || c.Env[at].ValueFrom.ResourceFieldRef.Resource != "requests.cpu" {
		t.Errorf("GOMAXPROCS: %v", c.Env)
	}
	// With GOMEMLIMIT from the downward API it would be all of the limit.
	if slices.ContainsFunc(c.Env, func(v core.EnvVar) bool { return v.Name == "GOMEMLIMIT" }) {
		t.Error("GOMEMLIMIT is not left to the process")
	}
	s := c.SecurityContext
	if !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !*pod.SecurityContext.RunAsNonRoot || *pod.AutomountServiceAccountToken {
		t.Errorf("rights: %v, %v", pod.SecurityContext, s)
	}
	mounted := map[string]bool{}
	for _, m := range c.VolumeMounts {
		if mounted[m.MountPath] || !m.ReadOnly {
			t.Errorf("%s is mounted twice, or can be written", m.MountPath)
		}
		mounted[m.MountPath] = true
	}
}

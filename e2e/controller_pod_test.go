// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// policies stands for a controller in requests that are about policies, and is the namespace
// of these.
const policies = "policies"

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// acceptPod removes what the API server refuses itself, and mostly what other controllers
// deny: all of them see each pod, and a denial hides what the others make of it.
func acceptPod(d sample.Dice, controller string, s *corev1.PodSpec) {
	about := func(name string) bool { return controller == name || d.One(30) }
	s.EphemeralContainers = nil // may not be there yet
	if controller == policies {
		for i := range s.InitContainers {
			c := &s.InitContainers[i]
			c.LivenessProbe, c.ReadinessProbe = nil, nil
		}
		if !d.One(4) {
			withoutUsers(s)
		}
		return
	}
	if len(s.Containers) == 0 {
		s.Containers = []corev1.Container{{Name: "c0", Image: "a"}}
	}
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			if !d.One(20) {
				acceptResources(&list[i].Resources)
			}
		}
	}
	if !d.One(20) {
		s.Resources = nil // those of all containers must fit into it
	}
	acceptSecurity(d, s)
	for i := range s.Tolerations {
		acceptToleration(&s.Tolerations[i])
	}
	for i := range s.Volumes {
		acceptVolume(i, &s.Volumes[i].VolumeSource)
	}
	if !about("LimitPodHardAntiAffinityTopology") {
		s.Affinity = nil
	} else if s.Affinity != nil && s.Affinity.PodAntiAffinity != nil {
		for i := range s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term := &s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]; term.TopologyKey == "" {
				term.TopologyKey = "rack"
			}
		}
	}
	if !about("Priority") {
		s.Priority, s.PreemptionPolicy = nil, nil
		if s.PriorityClassName == "unknown" {
			s.PriorityClassName = ""
		}
	} else if !d.One(3) {
		s.Priority, s.PreemptionPolicy = nil, nil
	}
	switch {
	case !about("RuntimeClass"):
		s.RuntimeClassName, s.Overhead = nil, nil
	case !d.One(5):
		s.Overhead = nil
	}
	if controller == "PodNodeSelector" && d.One(3) {
		s.NodeSelector = nil
	}
}

// withoutUsers removes what a policy denies that every pod without faults has.
func withoutUsers(s *corev1.PodSpec) {
	if s.SecurityContext != nil {
		s.SecurityContext.SELinuxOptions, s.SecurityContext.RunAsUser, s.SecurityContext.FSGroup = nil, nil, nil
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			if c := list[i].SecurityContext; c != nil {
				c.SELinuxOptions, c.RunAsUser = nil, nil
			}
		}
	}
}

// acceptSecurity leaves what fits together, mostly.
func acceptSecurity(d sample.Dice, s *corev1.PodSpec) {
	if d.One(10) {
		return
	}
	if s.OS, s.HostUsers = nil, nil; s.SecurityContext != nil {
		s.SecurityContext.WindowsOptions = nil
		acceptProfiles(s.SecurityContext.SeccompProfile, s.SecurityContext.AppArmorProfile)
	}
	for n, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			c := &list[i]
			if n == 0 {
				c.LivenessProbe, c.Lifecycle = nil, nil
			}
			if len(c.Ports) > 0 && s.HostNetwork {
				c.Ports = nil
			}
			if c.SecurityContext == nil {
				continue
			}
			c.SecurityContext.WindowsOptions, c.SecurityContext.ProcMount = nil, nil
			acceptProfiles(c.SecurityContext.SeccompProfile, c.SecurityContext.AppArmorProfile)
			if p := c.SecurityContext.Privileged; p != nil && *p {
				c.SecurityContext.AllowPrivilegeEscalation = nil
			}
		}
	}
}

func acceptProfiles(seccomp *corev1.SeccompProfile, appArmor *corev1.AppArmorProfile) {
	if seccomp != nil && seccomp.Type == corev1.SeccompProfileTypeLocalhost {
		seccomp.LocalhostProfile = new("a.json")
	}
	if appArmor != nil && appArmor.Type == corev1.AppArmorProfileTypeLocalhost {
		appArmor.LocalhostProfile = new("a")
	}
}

// acceptResources leaves what containers may ask for: no more than their limits.
func acceptResources(r *corev1.ResourceRequirements) {
	r.Claims = nil
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for name, q := range list {
			if q.Sign() < 0 || name == "hugepages-2Mi" {
				delete(list, name)
			}
		}
	}
	const device = "example.com/gpu"
	_, wanted := r.Requests[device]
	if _, limited := r.Limits[device]; wanted || limited {
		if r.Limits == nil {
			r.Limits = corev1.ResourceList{}
		}
		r.Limits[device] = quantity("2")
		delete(r.Requests, device)
	}
	for name, most := range r.Limits {
		if q, ok := r.Requests[name]; ok && q.Cmp(most) > 0 {
			r.Requests[name] = most
		}
	}
}

func acceptToleration(t *corev1.Toleration) {
	if t.Operator == corev1.TolerationOpLt || t.Key == "" {
		t.Operator = corev1.TolerationOpExists
	}
	if t.Operator == corev1.TolerationOpExists {
		t.Value = ""
	}
	if t.TolerationSeconds != nil {
		t.Effect = corev1.TaintEffectNoExecute
	}
}

func acceptVolume(i int, v *corev1.VolumeSource) {
	name := fmt.Sprint("v", i)
	switch {
	case v.ConfigMap != nil:
		v.ConfigMap.Name = name
	case v.Secret != nil:
		v.Secret.SecretName = name
	case v.Image != nil:
		v.Image.Reference = name
	case v.NFS != nil:
		v.NFS.Server, v.NFS.Path = "nfs", "/"
	}
}

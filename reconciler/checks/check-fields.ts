/** The fields of a check that users write, wherever an object has checks. */
import * as z from "zod";

export const checkFields = z.object({
  name: z.string(),
  query: z.object({
    expr: z.string(),
    url: z.string(),
    insecureSkipVerify: z.boolean().optional(),
    caBundle: z.string().optional(),
    secretRef: z.string().optional(),
  }),
  successWhen: z.enum(["NoData", "Data"]),
  initialDelaySeconds: z.number().default(60),
  periodSeconds: z.number().default(60),
  successThreshold: z.number().default(3),
});

/** The part of Headlamp's store that is used. */
declare module "react-redux" {
  import type { FilterState } from "@kinvolk/headlamp-plugin/lib/redux/filterSlice";
  export function useSelector<T>(select: (state: { readonly filter: FilterState }) => T): T;
}
